"""Commands that make the repository of a gateway."""
