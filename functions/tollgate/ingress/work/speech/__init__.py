"""The client format of OpenAI's text-to-speech API."""
