"""Transports, which do the I/O for calls to providers."""
