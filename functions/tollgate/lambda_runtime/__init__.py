"""The streaming function's runtime: the Runtime API on one side, an ASGI application on the other.

It knows nothing of what the application does, so that it can go once AWS streams from Python.
"""
