"""Protocols of providers, and tables that routing and the engine read."""
