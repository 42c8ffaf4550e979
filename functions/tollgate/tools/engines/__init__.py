"""Codecs of search and OCR engines, one module each."""
