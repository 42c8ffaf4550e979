"""Models for request and reply bodies of the chat completions API."""
