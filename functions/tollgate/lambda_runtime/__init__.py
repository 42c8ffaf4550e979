"""The streaming function's runtime: the Runtime API on one side, an ASGI application on the other.

It is independent of the application, so that it can be removed once AWS streams from Python.
"""
