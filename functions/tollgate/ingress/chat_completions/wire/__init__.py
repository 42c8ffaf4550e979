"""Bodies of chat completions as clients send and receive them."""
