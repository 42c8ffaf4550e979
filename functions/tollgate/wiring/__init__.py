"""Creates a gateway from settings and a catalog: the only importer of concrete classes.

Each module wires what one kind of function needs, so that no function imports parts that only
others use.
"""
