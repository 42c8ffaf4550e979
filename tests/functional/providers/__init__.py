"""Transports over real sockets, against a scripted provider."""
