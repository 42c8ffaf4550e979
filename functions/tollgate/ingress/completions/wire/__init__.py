"""Models for request and reply bodies of the legacy completions API."""
