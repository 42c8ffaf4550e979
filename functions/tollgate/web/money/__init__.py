"""Routes and bodies of credit, statements and workspaces."""
