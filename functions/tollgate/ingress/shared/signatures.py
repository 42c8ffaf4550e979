"""Packs the data that a signer needs back into the one text that a client format has for it.

Clients return that text untouched; what was packed for another signer than the format's own is
unpacked when it comes back.
"""

import binascii
from typing import Final

import msgspec
from msgspec import Struct

from tollgate.core.content import Provenance

# No signature of a provider's own begins so: they are base64 of something that begins otherwise.
_PREFIX: Final = "tollgate1."


class Packed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a packed signature."""

    provenance: Provenance
    call_id: str | None = None
    """The call that the provenance belongs to; None if it is the carrying part's own."""


def pack(packed: Packed) -> str:
    """Return a text that carries what a signer needs back."""
    encoded = binascii.b2a_base64(msgspec.json.encode(packed), newline=False)
    return _PREFIX + encoded.decode()


def is_packed(text: str) -> bool:
    """Return whether a text was packed here; any other text is a provider's own."""
    return text.startswith(_PREFIX)


def unpack(text: str) -> Packed | None:
    """Return what a packed text carries; None if a client changed it."""
    try:
        encoded = binascii.a2b_base64(text.removeprefix(_PREFIX), strict_mode=True)
        return msgspec.json.decode(encoded, type=Packed)
    except (ValueError, RecursionError):
        # What nobody reads inside may be nested deeper than the decoder goes.
        return None
