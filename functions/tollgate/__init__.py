"""Tollgate: an OpenAI-compatible LLM gateway that scales to zero."""
