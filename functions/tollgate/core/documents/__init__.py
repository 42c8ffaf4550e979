"""Documents that the gateway reads for a model: the options, the reader's tasks, and
the results.
"""
