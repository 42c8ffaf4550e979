"""Logs, metrics and spans of the service; they never contain bodies, keys or headers."""
