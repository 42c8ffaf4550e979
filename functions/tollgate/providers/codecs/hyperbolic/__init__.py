"""Speech on Hyperbolic's own API."""
