"""Protocols of the stores."""
