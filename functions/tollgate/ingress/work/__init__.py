"""Client formats of work on inputs, a package for each."""
