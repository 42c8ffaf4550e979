"""What the service says about itself; never bodies, keys or headers."""
