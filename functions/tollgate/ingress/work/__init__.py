"""Client formats for every kind of work except chat, each in its own package."""
