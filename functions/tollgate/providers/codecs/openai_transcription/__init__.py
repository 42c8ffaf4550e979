"""Transcripts in OpenAI's shape, and in that of servers that imitate it."""
