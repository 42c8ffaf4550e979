"""Protocols and tables of providers, which routing and the engine read."""
