"""Transports: the I/O of calls to providers."""
