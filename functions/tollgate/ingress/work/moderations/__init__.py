"""OpenAI's moderations as a client format."""
