"""Documents that the gateway reads for a model: options, tasks of a reader, and results."""
