"""OpenAI's speech as a client format."""
