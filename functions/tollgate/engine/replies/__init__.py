"""Replies of a generation: sinks, stored answers, and the content log."""
