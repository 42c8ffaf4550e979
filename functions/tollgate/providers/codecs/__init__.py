"""Codecs of wire formats, one package for each format; no package imports another."""
