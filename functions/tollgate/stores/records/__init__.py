"""Generation records, daily activity, stored content, responses and idempotent answers."""
