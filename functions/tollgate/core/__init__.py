"""Values that all layers share. This package does no I/O and imports nothing from the rest of
Tollgate.
"""
