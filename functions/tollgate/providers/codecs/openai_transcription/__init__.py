"""Transcriptions in OpenAI's format, by OpenAI and its imitators."""
