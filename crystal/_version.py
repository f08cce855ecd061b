"""The version, as a constant: reading it costs nothing."""

VERSION = "0.1.0"
