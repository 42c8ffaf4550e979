"""Signed reasoning in the one field that thinking blocks have for it.

Claude's signatures stand as they are. What another signer needs back is packed into the signature
of a thinking block, where clients return it untouched, and unpacked when it comes back.
"""

import binascii
from typing import Final

import msgspec
from msgspec import Struct

from tollgate.core.content import Provenance, Reasoning
from tollgate.core.signers import CLAUDE

# No signature of Claude's begins so: they are base64 of a message that begins otherwise.
_PREFIX: Final = "tollgate1."


class Packed(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The content of a packed signature."""

    provenance: Provenance
    call_id: str | None = None
    """The call that the provenance belongs to; None if it is the block's own."""


def pack(packed: Packed) -> str:
    """Return the signature of a thinking block that carries what its signer needs back."""
    encoded = binascii.b2a_base64(msgspec.json.encode(packed), newline=False)
    return _PREFIX + encoded.decode()


def unpack(signature: str) -> Packed | None:
    """Return what a signature carries; None if a client changed it."""
    if not signature.startswith(_PREFIX):
        return Packed(provenance=Provenance(signer=CLAUDE, signature=signature))
    try:
        encoded = binascii.a2b_base64(signature.removeprefix(_PREFIX), strict_mode=True)
        return msgspec.json.decode(encoded, type=Packed)
    except ValueError:
        return None


def thinking_signature(reasoning: Reasoning) -> str:
    """Return the signature of a thinking block for a reasoning, empty if nobody signed it."""
    provenance = reasoning.provenance
    if provenance is None:
        return ""
    signature = provenance.signature
    if provenance == Provenance(signer=CLAUDE, signature=signature):
        return signature or ""
    return pack(Packed(provenance=provenance))
