"""Bodies of legacy completions as clients send and receive them."""
