"""Models for request and reply bodies of OpenAI's Responses API."""
