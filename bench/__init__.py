"""Benchmark of Tollgate, a byte-forwarding floor and a pass-through, on the same mock upstream."""
