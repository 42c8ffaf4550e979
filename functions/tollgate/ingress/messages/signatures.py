"""Signed reasoning in the one field that thinking blocks have for it.

Claude's signatures stand as they are. What another signer needs back is packed into the signature
of a thinking block.
"""

from tollgate.core.content import Provenance, Reasoning
from tollgate.core.signers import CLAUDE
from tollgate.ingress.shared.signatures import Packed, is_packed, pack, unpack


def read_signature(signature: str) -> Packed | None:
    """Return what a signature carries; None if a client changed it."""
    if is_packed(signature):
        return unpack(signature)
    return Packed(provenance=Provenance(signer=CLAUDE, signature=signature))


def thinking_signature(reasoning: Reasoning) -> str:
    """Return the signature of a thinking block for a reasoning, empty if nobody signed it."""
    provenance = reasoning.provenance
    if provenance is None:
        return ""
    signature = provenance.signature
    if provenance == Provenance(signer=CLAUDE, signature=signature):
        return signature or ""
    return pack(Packed(provenance=provenance))
