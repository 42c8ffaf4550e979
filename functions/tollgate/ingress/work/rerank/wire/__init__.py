"""Models of the format on the wire."""
