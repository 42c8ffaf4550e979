"""Two releases on one store: one writes an item of every kind, the other reads and settles them."""
