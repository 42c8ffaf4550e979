"""Reads and writes the field `signature` of thinking blocks.

A signature of Claude is written unchanged. Data of another signer is packed into the field.
"""

from tollgate.core.content import Provenance, Reasoning
from tollgate.core.signers import CLAUDE
from tollgate.ingress.shared.signatures import Packed, is_packed, pack, unpack


def read_signature(signature: str) -> Packed | None:
    """Return the content of a signature; None if a client has damaged a packed signature."""
    if is_packed(signature):
        return unpack(signature)
    return Packed(provenance=Provenance(signer=CLAUDE, signature=signature))


def thinking_signature(reasoning: Reasoning) -> str:
    """Return the signature of a thinking block; empty if the reasoning is unsigned."""
    provenance = reasoning.provenance
    if provenance is None:
        return ""
    signature = provenance.signature
    if provenance == Provenance(signer=CLAUDE, signature=signature):
        return signature or ""
    return pack(Packed(provenance=provenance))
