"""Codecs of search engines: one module each, and their table."""
