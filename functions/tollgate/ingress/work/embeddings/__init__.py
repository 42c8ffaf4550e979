"""The client format of OpenAI's embeddings API."""
