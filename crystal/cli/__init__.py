"""The command line: click commands, one module per noun, and the printers of a run's events."""
