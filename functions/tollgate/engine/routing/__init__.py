"""The followed catalog, reports about endpoints, and simulated plans."""
