"""Commands that serve the gateway from this machine."""
