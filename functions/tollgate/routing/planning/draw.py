"""Weighted choice without chance: rendezvous hashing, the same for the same key everywhere.

Each name gets a score from a hash of where it is drawn, for whom, and its own name; the highest
wins. A name that comes, goes or changes its weight moves only its own share (Thaler and
Ravishankar 1998; with weights as -w/ln(u): Schindelhauer and Schomaker 2005).
"""

import math
from collections.abc import Mapping
from hashlib import blake2b, sha256
from typing import Final

_KEY_LENGTH: Final = 16
# As many bits as leave a float room to stay below one.
_BITS: Final = 52


def draw_key_hash(draw_key: str) -> str:
    """What is drawn by, and kept in records: the hash of a session's or a request's id."""
    return sha256(draw_key.encode("utf-8", "surrogatepass")).hexdigest()[:_KEY_LENGTH]


def score(place: str, key_hash: str, name: str, weight: int) -> float:
    """How well a name is placed; of several the highest wins, in proportion to their weights."""
    digest = blake2b(f"{place}\0{key_hash}\0{name}".encode(), digest_size=8).digest()
    uniform = ((int.from_bytes(digest, "big") >> (64 - _BITS)) + 0.5) / (1 << _BITS)
    return -weight / math.log(uniform)


def ranked(place: str, key_hash: str, weights: Mapping[str, int]) -> list[tuple[str, float]]:
    """Names with their scores, the winner first; those without weight come last."""
    scores = [(name, score(place, key_hash, name, weight)) for name, weight in weights.items()]
    return sorted(scores, key=lambda scored: (-scored[1], scored[0]))
