"""Published catalogs, ends of models, and cooldowns and speeds of endpoints."""
