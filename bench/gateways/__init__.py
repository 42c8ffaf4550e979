"""The gateways that are measured, each in its own process."""
