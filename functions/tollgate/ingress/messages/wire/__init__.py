"""Models for request and reply bodies of Anthropic's Messages API."""
