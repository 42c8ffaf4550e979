"""Packs a signer's data into the text field that a client format has for signatures.

A signer is the maker of a model's reasoning, who alone can verify the reasoning when a client sends
it back. Clients return the field unchanged.
"""

import binascii
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from tollgate.core.content import Provenance

# The signatures of providers never have this prefix, because base64 contains no dots.
_PREFIX: Final = "tollgate1."


class Packed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A signer's data, to be packed into a signature field."""

    provenance: Provenance
    call_id: str | None = None
    """The id of the call that was signed; None if the text next to the signature was signed."""


_Content = TypeVar("_Content", bound=Struct)


def pack_struct(prefix: str, content: Struct) -> str:
    """Return the prefix followed by the content as base64-encoded JSON."""
    return prefix + binascii.b2a_base64(msgspec.json.encode(content), newline=False).decode()


def unpack_struct(prefix: str, text: str, type_: type[_Content]) -> _Content | None:
    """Return the content that `pack_struct` encoded; None if a client damaged the text."""
    try:
        encoded = binascii.a2b_base64(text.removeprefix(prefix), strict_mode=True)
        return msgspec.json.decode(encoded, type=type_)
    except (ValueError, RecursionError):
        # Forged JSON that is nested too deeply raises RecursionError.
        return None


def pack(packed: Packed) -> str:
    """Return the signature that contains the signer's data."""
    return pack_struct(_PREFIX, packed)


def is_packed(text: str) -> bool:
    """Return True if `pack` produced the text; otherwise the text comes from a provider."""
    return text.startswith(_PREFIX)


def unpack(text: str) -> Packed | None:
    """Return the data in a packed signature; None if a client damaged the text."""
    return unpack_struct(_PREFIX, text, Packed)
