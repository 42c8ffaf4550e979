"""A transport that answers without a provider."""
