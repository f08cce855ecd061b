"""The plugin host: registration, order, dispatch, admission and notes. It has no features of its own."""
