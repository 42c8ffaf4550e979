"""Requests for work other than chat."""
