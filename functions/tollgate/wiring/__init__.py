"""Settings and a catalog become a gateway: the only importer of concrete classes.

Each module wires what one kind of function needs, so that none imports what only others do.
"""
