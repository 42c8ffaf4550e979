"""Check, compile and describe routing.yaml. Imported by the command line alone."""
