"""Embeddings of Cohere's own API."""
