"""Running the tools of tool sets: programs and Python code that a ``tools.json`` names."""
