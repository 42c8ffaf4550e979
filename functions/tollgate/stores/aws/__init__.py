"""What all stores share: the signed client, tables, items and expressions."""
