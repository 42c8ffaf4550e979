"""Modules for several codecs."""
