"""Published catalogs, the retirement of models, and the cooldowns and speeds of endpoints."""
