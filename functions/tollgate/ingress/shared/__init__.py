"""Code of two or more client formats."""
