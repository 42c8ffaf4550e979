"""Requests of tools: media and pages by URL, and calls of engines."""
