"""The sign-in application."""
