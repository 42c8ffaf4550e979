"""Models of the bodies of Anthropic's Messages."""
