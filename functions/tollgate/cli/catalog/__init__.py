"""Commands that keep models, prices and limits of a routing file in step with published ones."""
