"""Signs people in by an OpenID Connect issuer, and programs by a person's leave (OAuth 2.0)."""
