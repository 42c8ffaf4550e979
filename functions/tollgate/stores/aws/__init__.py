"""Parts that all AWS stores share: signed clients, tables, items and expressions."""
