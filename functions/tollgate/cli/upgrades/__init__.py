"""Comparison of two releases of Tollgate, and the change from one to the other."""
