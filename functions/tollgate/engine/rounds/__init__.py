"""Rounds in which the gateway runs tools for the model."""
