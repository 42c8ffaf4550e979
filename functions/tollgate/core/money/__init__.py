"""Amounts of money, and the statement of a month."""
