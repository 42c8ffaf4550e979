"""Sign-in of people through an OpenID Connect issuer, and of programs that a person approves (OAuth
2.0).
"""
