"""Code that two or more client formats share."""
