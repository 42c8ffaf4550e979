"""Style rules as pure functions from a source file to its violations."""
