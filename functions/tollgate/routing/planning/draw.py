"""Draw by weight deterministically: rendezvous hashing gives the same result on every machine.

Each name gets a score from a hash of the draw's scope, the draw's key and the name; the highest
score wins. Adding, removing or reweighting a name moves only requests of that name's share (Thaler
and Ravishankar 1998; with weights as -w/ln(u): Schindelhauer and
Schomaker 2005).
"""

import math
from collections.abc import Mapping
from hashlib import blake2b, sha256
from typing import Final

_KEY_LENGTH: Final = 16
# One bit fewer than a float's mantissa of 53, so that (2**52 - 0.5) / 2**52 stays below one.
_BITS: Final = 52


def draw_key_hash(draw_key: str) -> str:
    """Hash the id of a session or request; the hash is the key of its draws and is recorded."""
    return sha256(draw_key.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_LENGTH]


def score(scope: str, key_hash: str, name: str, weight: int) -> float:
    """Return a name's score (at least 0); the highest wins, with odds in proportion to weights."""
    digest = blake2b(f"{scope}\0{key_hash}\0{name}".encode(), digest_size=8).digest()
    uniform = ((int.from_bytes(digest, "big") >> (64 - _BITS)) + 0.5) / (1 << _BITS)
    return -weight / math.log(uniform)


def rank(scope: str, key_hash: str, weights: Mapping[str, int]) -> list[tuple[str, float]]:
    """Return the names with their scores, highest score first; names of weight 0 come last."""
    scores = [(name, score(scope, key_hash, name, weight)) for name, weight in weights.items()]
    return sorted(scores, key=lambda scored: (-scored[1], scored[0]))
