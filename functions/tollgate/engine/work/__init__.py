"""Work on inputs at one endpoint."""
