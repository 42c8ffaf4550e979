"""Modules that several codecs share."""
