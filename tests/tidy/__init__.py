"""The style rules, as pure functions from a source file to what breaks them in it."""
