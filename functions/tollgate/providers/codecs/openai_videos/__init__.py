"""Videos in OpenAI's format."""
