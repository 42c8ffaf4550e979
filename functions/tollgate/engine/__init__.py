"""Runs a generation from plan to settlement, using protocols only: no vendor, no AWS."""
