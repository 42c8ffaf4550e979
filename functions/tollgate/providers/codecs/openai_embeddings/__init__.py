"""Embeddings in OpenAI's format, and in that of everyone who imitates it."""
