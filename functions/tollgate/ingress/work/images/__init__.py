"""OpenAI's generation and editing of pictures as client formats."""
