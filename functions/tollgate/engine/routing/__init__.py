"""Catalog updates, endpoint reports and simulated plans."""
