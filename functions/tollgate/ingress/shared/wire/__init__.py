"""Models for requests and replies that several client formats share."""
