"""The distribution that adds the server's libraries, and a check of what a release has."""
