"""Codes that live for minutes: how they are written, and the protocol of their store."""

from base64 import urlsafe_b64encode
from collections.abc import Callable
from hashlib import sha256
from typing import Final, Literal, Protocol

CodeKind = Literal["attempt", "code", "device", "refresh", "user"]
# Without vowels, so that no code is a word (RFC 8628, 6.1).
_LETTERS: Final = "BCDFGHJKLMNPQRSTVWXZ"
_GROUP: Final = 4
_GROUPS: Final = 2
_SECRET_BYTES: Final = 32


class CodeStore(Protocol):
    """Values under the hash of a code, each for a time.

    Raises LedgerError(service_unavailable) when the store cannot be reached.
    """

    async def add(self, kind: CodeKind, digest: str, value: bytes, *, lifetime_s: int) -> bool:
        """Keep a value; False if there is one already."""

    async def read(self, kind: CodeKind, digest: str) -> bytes | None:
        """Return a value, None once its time is over."""

    async def replace(
        self, kind: CodeKind, digest: str, old: bytes, new: bytes, *, lifetime_s: int | None
    ) -> bool:
        """Replace a value that is still `old`; False if it is not.

        Its time begins anew with `lifetime_s`, and stays as it is with None.
        """

    async def take(self, kind: CodeKind, digest: str) -> bytes | None:
        """Delete a value and return it, to one caller alone; None if there is none."""

    async def count(self, what: str, origin: str, *, window_s: int, most: int) -> bool:
        """Count a call of an address in this window; False once there were more than `most`."""


def digest_of(code: str) -> str:
    """Return the hash that a code is stored as."""
    return sha256(code.encode()).hexdigest()


def new_secret_code(entropy: Callable[[int], bytes]) -> str:
    """Make a code of 256 random bits for programs."""
    return urlsafe_b64encode(entropy(_SECRET_BYTES)).rstrip(b"=").decode("ascii")


def new_user_code(entropy: Callable[[int], bytes]) -> str:
    """Make a code that people type: `BCDF-GHJK`, 34 random bits."""
    drawn = int.from_bytes(entropy(16), "big")
    letters = []
    for _ in range(_GROUP * _GROUPS):
        drawn, letter = divmod(drawn, len(_LETTERS))
        letters.append(_LETTERS[letter])
    return "-".join("".join(letters[at : at + _GROUP]) for at in (0, _GROUP))


def read_user_code(text: str) -> str | None:
    """Return a typed code in its one spelling, None if it cannot be one."""
    letters = [letter for letter in text.upper() if letter.isalnum()]
    if len(letters) != _GROUP * _GROUPS or not set(letters) <= set(_LETTERS):
        return None
    return "-".join("".join(letters[at : at + _GROUP]) for at in (0, _GROUP))


def challenge_of(verifier: str) -> str:
    """Return the challenge of a verifier (RFC 7636, S256)."""
    return urlsafe_b64encode(sha256(verifier.encode()).digest()).rstrip(b"=").decode("ascii")
