"""Lists of models, in the forms of their clients."""
