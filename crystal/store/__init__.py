"""What outlives a process: the home's files, sessions in SQLite, media, grants. Knows no hook and no engine."""
