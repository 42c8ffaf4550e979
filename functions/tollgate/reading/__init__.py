"""Reads documents and web pages: pure functions, the process and the function that run them."""
