"""Plans each request: which endpoints to try, in which order, and at which price."""
