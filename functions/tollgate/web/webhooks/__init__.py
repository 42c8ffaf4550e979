"""Routes and bodies of webhooks."""
