"""Shapes of Anthropic's Messages."""
