"""Sortable ids of fifteen characters: seven bytes of time and four random bytes.

Ids created by older versions have four bytes of time (the second) and seven random bytes.
"""

import base64
import os
from collections.abc import Callable, Sequence
from functools import lru_cache
from random import Random
from typing import Final, TypeVar

from tollgate.core.clock import Clock

# The characters are in ASCII order, unlike those of ordinary base64url, so ids sort by time.
ALPHABET: Final = "-0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ_abcdefghijklmnopqrstuvwxyz"
ID_LENGTH: Final = 15
_RANDOM_BYTES: Final = 4
_TICKS_PER_S: Final = 2**24
_TICKS_MAX: Final = 2**56 - 1
_BYTES_AFTER_SECOND: Final = 7
_BASE64: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_TO_OURS: Final = bytes.maketrans(_BASE64, ALPHABET.encode())
_TO_BASE64: Final = bytes.maketrans(ALPHABET.encode(), _BASE64)
_CHARACTERS: Final = frozenset(ALPHABET)
_Value = TypeVar("_Value")


class SeededDraws:
    """Random choices that depend only on a seed, and so must never make secrets."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)  # noqa: S311 - no secret

    def choose(self, values: Sequence[_Value], count: int) -> list[_Value]:
        """Return `count` of the values, without repetition."""
        return self._random.sample(values, count)


class IdSource:
    """Creates ids for requests, holds, keys and grants."""

    def __init__(self, clock: Clock, entropy: Callable[[int], bytes] = os.urandom) -> None:
        self._clock = clock
        self._entropy = entropy
        self._latest_tick = 0

    def new_id(self) -> str:
        """Return an id that sorts after all ids of earlier times and after this source's last id.

        The last id can sort later only if the clock was set back to an earlier second.
        """
        tick = int(self._clock.now_s() * _TICKS_PER_S) & _TICKS_MAX
        if tick // _TICKS_PER_S == self._latest_tick // _TICKS_PER_S:
            tick = max(tick, self._latest_tick + 1)
        self._latest_tick = tick
        return encode_id(tick.to_bytes(7, "big") + self._entropy(_RANDOM_BYTES))

    def random_bytes(self, count: int) -> bytes:
        """Return unguessable bytes, for secrets."""
        return self._entropy(count)

    def uniform(self) -> float:
        """Return a number drawn from [0, 1), for jitter."""
        return int.from_bytes(self._entropy(4), "big") / 2**32

    def new_uuid7(self) -> str:
        """Return a version 7 UUID for this millisecond (RFC 9562, 5.7)."""
        millisecond = int(self._clock.now_s() * 1_000) & 0xFFFF_FFFF_FFFF
        value = int.from_bytes(millisecond.to_bytes(6, "big") + self._entropy(10), "big")
        value = value & ~(0xF << 76) | 7 << 76
        value = value & ~(0b11 << 62) | 0b10 << 62
        text = f"{value:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def new_boundary() -> str:
    """Return a multipart boundary that the author of a part cannot guess."""
    return os.urandom(16).hex()


def encode_id(raw: bytes) -> str:
    """Encode eleven bytes as fifteen characters that sort like the bytes."""
    # A leading zero byte makes sixteen base64 characters, the first of which is always the same.
    return base64.b64encode(b"\0" + raw)[1:].translate(_TO_OURS).decode()


def is_id(text: str) -> bool:
    """Return whether `text` has the form of an id."""
    return len(text) == ID_LENGTH and _CHARACTERS.issuperset(text)


# Cached, because each request reads the time from its own id about ten times.
@lru_cache(maxsize=256)
def created_s(id_: str) -> int:
    """Return the Unix second in which an id was created; raise ValueError if it is not an id."""
    if not is_id(id_):
        raise ValueError(f"not an id: {id_!r}")
    raw = base64.b64decode(b"A" + id_.encode().translate(_TO_BASE64))
    return int.from_bytes(raw[:-_BYTES_AFTER_SECOND], "big")


def first_id_of(second: int) -> str:
    """Return the lowest possible id of a Unix second."""
    return encode_id(second.to_bytes(4, "big") + bytes(_BYTES_AFTER_SECOND))


def following_id(id_: str, count: int) -> str:
    """Return the id `count` ticks after an id, with the same random bytes."""
    raw = base64.b64decode(b"A" + id_.encode().translate(_TO_BASE64))
    tick = int.from_bytes(raw[1:-_RANDOM_BYTES], "big") + count
    return encode_id((tick & _TICKS_MAX).to_bytes(7, "big") + raw[-_RANDOM_BYTES:])


def without_prefix(text: str) -> str:
    """Return the bare id in `gen-…`, `resp_…` or `msg_…`; any other text is returned unchanged."""
    for prefix in ("gen-", "resp_", "msg_"):
        if text.startswith(prefix):
            return text.removeprefix(prefix)
    return text
