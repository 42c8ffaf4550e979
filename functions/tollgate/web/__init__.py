"""The HTTP interface: routes, authentication and replies."""
