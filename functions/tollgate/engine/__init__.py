"""Runs a generation from planning to settlement. The package uses protocols only: it knows no
vendor and no AWS API.
"""
