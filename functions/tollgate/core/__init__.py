"""Values that cross the middle: no I/O, no vendor, nothing else of Tollgate is imported here."""
