"""Creates a gateway from settings and a catalog; no other package imports concrete classes.

Modules are small, so that no function imports code that only other functions use.
"""
