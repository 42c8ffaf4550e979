"""Models of the bodies of legacy completions, as clients send and receive them."""
