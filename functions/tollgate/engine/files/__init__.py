"""Media of a request behind URLs and in files."""
