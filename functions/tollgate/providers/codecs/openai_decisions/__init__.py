"""Decisions in OpenAI's format."""
