"""The format of a key's secret: a prefix, 192 random bits and a checksum."""

import hashlib
import zlib
from collections.abc import Callable
from typing import Final

_ALPHABET: Final = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"
_RANDOM_BYTES: Final = 24
_RANDOM_LENGTH: Final = 33
_CHECKSUM_LENGTH: Final = 6
LAST_LENGTH: Final = 4


def new_secret(prefix: str, entropy: Callable[[int], bytes]) -> str:
    """Make a random secret: the prefix, followed by letters and digits."""
    random_number = int.from_bytes(entropy(_RANDOM_BYTES), "big")
    unchecked = prefix + _base62(random_number, _RANDOM_LENGTH)
    return unchecked + _checksum(unchecked)


def is_well_formed(secret: str, prefix: str) -> bool:
    """Return True if a text has the format and checksum of a secret; the store is not read."""
    return (
        len(secret) == len(prefix) + _RANDOM_LENGTH + _CHECKSUM_LENGTH
        and secret.startswith(prefix)
        and secret.isascii()
        and secret[-_CHECKSUM_LENGTH:] == _checksum(secret[:-_CHECKSUM_LENGTH])
    )


def secret_hash(secret: str) -> str:
    """Return the SHA-256 of a whole secret in hexadecimal, which is stored instead of the secret.

    Salt and key stretching are not needed, because 192 random bits cannot be guessed.
    """
    return hashlib.sha256(secret.encode("ascii")).hexdigest()


def _checksum(unchecked: str) -> str:
    return _base62(zlib.crc32(unchecked.encode("ascii")), _CHECKSUM_LENGTH)


def _base62(value: int, length: int) -> str:
    digits = []
    for _ in range(length):
        value, digit = divmod(value, len(_ALPHABET))
        digits.append(_ALPHABET[digit])
    return "".join(reversed(digits))
