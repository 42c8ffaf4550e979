"""Lists of models, in the formats of clients."""
