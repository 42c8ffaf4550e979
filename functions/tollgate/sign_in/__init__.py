"""Sign-in of people by OpenID Connect, and of programs that a person approves (OAuth 2.0)."""
