"""Codecs of wire formats, a package for each; none imports another."""
