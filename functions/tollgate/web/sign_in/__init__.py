"""The application that signs people in."""
