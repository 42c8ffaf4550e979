"""Check, compile and describe routing.yaml. Only the command line imports it."""
