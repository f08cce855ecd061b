"""The built-in wire protocols, one plugin module each, and the modules they share.

An adapter is a pure encoder (request to body), a pure decoder (events to deltas) and the shared transport of
:mod:`crystal.wire`.
"""
