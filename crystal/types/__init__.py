"""The values that cross the plugin boundary: frozen, slotted, without I/O and without imports from the rest.

Import from the module that owns a name, or from ``crystal`` for the short public list.
"""
