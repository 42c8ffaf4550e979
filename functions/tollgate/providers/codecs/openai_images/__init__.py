"""OpenAI's pictures, and those of its imitators."""
