"""Generation records, daily activity, logged content and kept answers."""
