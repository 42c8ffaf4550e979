"""Generation records, daily activity, logged content, stored responses and kept answers."""
