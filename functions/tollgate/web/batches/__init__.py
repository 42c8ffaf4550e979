"""Routes of batches, in the formats of OpenAI's and Anthropic's clients."""
