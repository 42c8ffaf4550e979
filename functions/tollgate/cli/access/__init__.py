"""People, keys and budgets as a file: its schema, its comparison with a gateway, and its use."""
