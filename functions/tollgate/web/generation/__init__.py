"""Metered requests: entrance, labels, idempotency and token counts."""
