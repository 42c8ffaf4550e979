"""Published catalogs and the cooldown of endpoints."""
