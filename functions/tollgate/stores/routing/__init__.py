"""Published catalogs, and the cooldowns and speeds of endpoints."""
