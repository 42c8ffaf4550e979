"""Ranking of documents as a client format, in Cohere's and Jina's fields."""
