"""The gateway beside a byte-forwarding floor and a bare pass-through, on one mock upstream."""
