"""The documentation as a site: the pages of the repository, and references made from the code."""
