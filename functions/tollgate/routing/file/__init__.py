"""Checks, compiles and describes routing.yaml; only the command line imports this package."""
