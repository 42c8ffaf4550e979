"""OpenAI's embeddings as a client format."""
