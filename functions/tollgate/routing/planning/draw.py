"""Draw by weight without chance: rendezvous hashing, with the same result on every machine.

Each name gets a score from a hash of the draw's scope, of the draw's key and of the name; the
highest score wins. Adding a name, removing one or changing its weight moves only the requests of
that name's own share (Thaler and Ravishankar 1998; with weights as -w/ln(u): Schindelhauer and
Schomaker 2005).
"""

import math
from collections.abc import Mapping
from hashlib import blake2b, sha256
from typing import Final

_KEY_LENGTH: Final = 16
# A float has 53 bits of mantissa: with one fewer, (2**52 - 0.5) / 2**52 still is below one.
_BITS: Final = 52


def draw_key_hash(draw_key: str) -> str:
    """Hash a session's or a request's id: the key of its draws, and what its record stores."""
    return sha256(draw_key.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_LENGTH]


def score(scope: str, key_hash: str, name: str, weight: int) -> float:
    """Return a name's score, at least 0: the highest wins, in proportion to the weights."""
    digest = blake2b(f"{scope}\0{key_hash}\0{name}".encode(), digest_size=8).digest()
    uniform = ((int.from_bytes(digest, "big") >> (64 - _BITS)) + 0.5) / (1 << _BITS)
    return -weight / math.log(uniform)


def rank(scope: str, key_hash: str, weights: Mapping[str, int]) -> list[tuple[str, float]]:
    """Return the names with their scores, the winner first; a weight of 0 comes last."""
    scores = [(name, score(scope, key_hash, name, weight)) for name, weight in weights.items()]
    return sorted(scores, key=lambda scored: (-scored[1], scored[0]))
