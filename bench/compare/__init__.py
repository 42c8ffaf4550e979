"""Comparison of Tollgate with other gateways from their registries: `make compare`."""
