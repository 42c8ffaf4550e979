"""Uploaded files, and the detection of media types from the bytes of a file."""
