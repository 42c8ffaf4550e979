"""Models of requests and replies that two or more client formats share."""
