"""Amounts of money, and monthly statements."""
