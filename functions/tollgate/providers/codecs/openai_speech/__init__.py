"""Speech in OpenAI's format, of OpenAI and of its imitators."""
