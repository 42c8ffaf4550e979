"""Check, compile and describe routing.yaml; imported by the command line only."""
