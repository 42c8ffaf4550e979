"""Logs, metrics and spans of the service; none contains bodies, keys or headers."""
