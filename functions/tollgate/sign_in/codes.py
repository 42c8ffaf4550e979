"""Short-lived codes: their generation, canonical spelling and hashing."""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Final

# Vowels are left out, so that no code spells a word (RFC 8628, 6.1).
_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
_GROUP: Final = 4
_GROUPS: Final = 2
_SECRET_BYTES: Final = 32


def digest_of(code: str) -> str:
    """Return the hash under which a code is stored."""
    return sha256(code.encode()).hexdigest()


def new_secret_code(entropy: Callable[[int], bytes]) -> str:
    """Return a code with 256 random bits, which a program sends."""
    return urlsafe_b64encode(entropy(_SECRET_BYTES)).rstrip(b"=").decode("ascii")


def new_user_code(entropy: Callable[[int], bytes]) -> str:
    """Return a code with 34 random bits, such as `BCDF-GHJK`, which a person types."""
    random_number = int.from_bytes(entropy(16), "big")
    letters = []
    for _ in range(_GROUP * _GROUPS):
        random_number, letter = divmod(random_number, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "-".join("".join(letters[at : at + _GROUP]) for at in (0, _GROUP))


def read_user_code(text: str) -> str | None:
    """Return a typed code in its canonical spelling, or None if the text cannot be a code."""
    letters = [letter for letter in text.upper() if letter.isalnum()]
    if len(letters) != _GROUP * _GROUPS or not set(letters) <= set(_LETTERS):
        return None
    return "-".join("".join(letters[at : at + _GROUP]) for at in (0, _GROUP))


def challenge_of(verifier: str) -> str:
    """Return the S256 challenge of a code verifier (RFC 7636)."""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode("ascii")
