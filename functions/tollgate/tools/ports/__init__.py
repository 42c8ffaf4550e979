"""Protocols between rounds, the tools that run in them, and their I/O."""
