"""The streaming function's runtime, which connects the Runtime API to an ASGI application.

The runtime does not depend on the application, and can be removed once AWS streams from Python.
"""
