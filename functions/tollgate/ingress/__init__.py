"""Client formats: each parses into the middle and renders from it."""
