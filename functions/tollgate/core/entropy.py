"""Randomness of a process that was copied.

Ids, secrets and draws of Tollgate come from the kernel, which gives no two copies the same bytes;
the generators that libraries keep in memory are copied with the process ("Handling uniqueness with
Lambda SnapStart", AWS Lambda developer guide, 2026-11-21).
"""

import os
import random
import ssl
from typing import Final

_SEED_BYTES: Final = 32


def reseed() -> None:
    """Seed the generators of this process anew, so that they differ from those of its copies."""
    random.seed()
    ssl.RAND_add(os.urandom(_SEED_BYTES), _SEED_BYTES)
