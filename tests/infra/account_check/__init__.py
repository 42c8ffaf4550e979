"""Each probe of `make account-check`, seen to find what it expects and seen to find otherwise."""
