"""OpenAI's transcriptions and translations as client formats."""
