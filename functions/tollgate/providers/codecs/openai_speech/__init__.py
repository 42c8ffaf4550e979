"""Speech in OpenAI's format, from OpenAI and compatible servers."""
