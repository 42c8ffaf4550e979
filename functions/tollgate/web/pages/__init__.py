"""Pages of the console and of the API reference."""
