"""HTTP: routes, authentication, replies."""
