"""Printers: readers of a session's events, one a format. A printer is called with each event and prints or not."""
