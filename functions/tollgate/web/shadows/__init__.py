"""Sends a share of a route's requests to another model, and compares the answers."""
