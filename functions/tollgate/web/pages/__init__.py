"""Pages of the console and of the reference."""
