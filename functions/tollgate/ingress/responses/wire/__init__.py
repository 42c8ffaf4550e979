"""The shapes of OpenAI's Responses."""
