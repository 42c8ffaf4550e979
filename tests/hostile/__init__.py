"""Hostile providers, callers and networks, each suite bounded; the long ones run each night."""
