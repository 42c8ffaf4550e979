"""Rounds of a generation in which the gateway runs tools for the model."""
