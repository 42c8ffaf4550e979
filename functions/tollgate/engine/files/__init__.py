"""Media in requests that are URLs or uploaded files."""
