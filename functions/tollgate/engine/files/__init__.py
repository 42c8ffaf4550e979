"""Media that a request names by URL or as uploaded files."""
