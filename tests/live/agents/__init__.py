"""Coding agents as their users run them, against a gateway and providers on loopback."""
