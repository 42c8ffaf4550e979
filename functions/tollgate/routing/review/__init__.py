"""Compares two revisions of routing.yaml for a pull request."""
