"""Code that several client formats share."""
