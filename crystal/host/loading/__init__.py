"""Load contexts: code from a folder runs isolated, under names of its own, from the bytes that were digested.

A context is no sandbox. It keeps versions and names apart; it keeps no code from reaching the process it runs in:
``sys.modules['crystal.engine']`` is there for whoever asks for it.
"""
