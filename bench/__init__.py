"""Benchmark of Tollgate beside a byte-forwarding floor and a pass-through, on one mock upstream."""
