"""Protocols between generations, the tools that run in them, and the tools' I/O."""
