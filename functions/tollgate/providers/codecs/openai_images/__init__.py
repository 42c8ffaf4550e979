"""Images in OpenAI's format, by OpenAI and its imitators."""
