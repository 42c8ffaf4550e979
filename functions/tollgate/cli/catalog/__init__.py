"""Keep the models, prices and limits of a routing file true to published ones."""
