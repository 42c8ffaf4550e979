"""Uploaded files, and types of files and media by their bytes."""
