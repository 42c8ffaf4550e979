"""Randomness in processes that are copied from a snapshot.

Tollgate takes ids, secrets and random draws from the kernel, which never gives two copies the same
bytes. Generators that libraries keep in memory are copied with the process ("Handling uniqueness
with Lambda SnapStart", AWS Lambda developer guide, 2026-11-21).
"""

import os
import random
import ssl
from typing import Final

_SEED_BYTES: Final = 32


def reseed() -> None:
    """Seed the library generators of this process again, so that copies of it differ."""
    random.seed()
    ssl.RAND_add(os.urandom(_SEED_BYTES), _SEED_BYTES)
