"""Plan each request: which endpoints to try, in which order, at which price."""
