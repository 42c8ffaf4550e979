"""Recorded traffic of real providers, where somebody has it."""
