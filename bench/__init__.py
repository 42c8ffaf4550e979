"""Benchmarks of Tollgate against a byte-forwarding floor and a pass-through."""
