"""Replies: sinks, stored answers, and the content log."""
