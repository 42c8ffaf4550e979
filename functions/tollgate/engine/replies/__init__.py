"""Replies of a generation: sinks, kept answers, and the content log."""
