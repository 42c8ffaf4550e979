"""The client format of OpenAI's decisions API."""
