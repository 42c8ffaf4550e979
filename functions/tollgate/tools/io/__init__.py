"""I/O of tools: fetching media and pages by URL, and calling engines."""
