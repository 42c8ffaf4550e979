"""Tools that the gateway runs for a model: their table, and the engines that serve them."""
