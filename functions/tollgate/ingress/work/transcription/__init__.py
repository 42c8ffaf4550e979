"""The client formats of OpenAI's APIs for transcribing and translating recordings."""
