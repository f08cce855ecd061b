"""The engine: sessions, turns, model calls and tool calls. It emits events; it never prints and never asks."""
