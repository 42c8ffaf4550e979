"""Models of the bodies of chat completions, as clients send and receive them."""
