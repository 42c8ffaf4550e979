"""Packs a signer's data into the one text field that a client format has for signatures.

A signer is the provider that checks its own reasoning when a client sends that reasoning back.
"""

import binascii
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from tollgate.core.content import Provenance

# Signatures of providers never have this prefix, because they are base64, which has no dots.
_PREFIX: Final = "tollgate1."


class Packed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a packed signature."""

    provenance: Provenance
    call_id: str | None = None
    """The call that the provenance belongs to; None if it belongs to the part with the text."""


_Content = TypeVar("_Content", bound=Struct)


def pack_struct(prefix: str, content: Struct) -> str:
    """Return the prefix, followed by the content as JSON in base64."""
    return prefix + binascii.b2a_base64(msgspec.json.encode(content), newline=False).decode()


def unpack_struct(prefix: str, text: str, type_: type[_Content]) -> _Content | None:
    """Return the content that `pack_struct` wrote; None if a client has damaged the text."""
    try:
        encoded = binascii.a2b_base64(text.removeprefix(prefix), strict_mode=True)
        return msgspec.json.decode(encoded, type=type_)
    except (ValueError, RecursionError):
        # A forged text may be nested deeper than the decoder allows (RecursionError).
        return None


def pack(packed: Packed) -> str:
    """Return a text that contains the signer's data."""
    return pack_struct(_PREFIX, packed)


def is_packed(text: str) -> bool:
    """Return True if `pack` wrote the text; any other text is a provider's own signature."""
    return text.startswith(_PREFIX)


def unpack(text: str) -> Packed | None:
    """Return the content of a packed text; None if a client has damaged the text."""
    return unpack_struct(_PREFIX, text, Packed)
