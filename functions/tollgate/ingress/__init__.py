"""Client formats: each parses requests into core types, and renders replies from core types."""
