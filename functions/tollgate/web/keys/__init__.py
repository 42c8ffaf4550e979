"""Routes and bodies of keys."""
