"""Metered requests: entrance, labels, idempotency, and counts of tokens."""
