"""A transport that simulates a provider."""
