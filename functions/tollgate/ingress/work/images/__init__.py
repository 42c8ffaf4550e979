"""The client formats of OpenAI's APIs for generating and editing images."""
