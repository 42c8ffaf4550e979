"""Erasures and legal holds of end users, members and workspaces."""
