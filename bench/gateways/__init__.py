"""The gateways that are measured, each run as a process of its own."""
