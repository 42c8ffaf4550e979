"""Models of the bodies of OpenAI's Responses."""
