"""Moderations in OpenAI's format."""
