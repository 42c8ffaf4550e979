"""Hyperbolic's own API of media."""
