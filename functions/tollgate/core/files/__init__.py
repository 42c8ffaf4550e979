"""Uploaded files, and the detection of media types from their bytes."""
