"""Videos: a request creates one, a provider makes it, workers poll and store it."""
