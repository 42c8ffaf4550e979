"""Embeddings on Cohere's own API."""
