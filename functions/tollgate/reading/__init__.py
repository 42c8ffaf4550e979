"""Reads documents and web pages: pure functions, and the process in which they run."""
