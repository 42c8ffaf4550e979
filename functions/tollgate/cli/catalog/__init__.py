"""Commands that update the models, prices and limits in a routing file to published values."""
