"""Client formats, which parse requests into core types and render replies from core types."""
