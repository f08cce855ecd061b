"""Where plugins come from, one module a source, in registration order."""
