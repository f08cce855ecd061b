"""Programs run for a call: found outside the workspace, kept together, read in bounded memory, ended whole."""
