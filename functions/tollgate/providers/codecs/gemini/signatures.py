"""Thought signatures, which Gemini requires back unchanged on the part that had them.

https://ai.google.dev/gemini-api/docs/thought-signatures (seen 2026-11-21)
"""

from typing import Final

from tollgate.core.content import Provenance
from tollgate.core.signers import GEMINI

# The value that Google accepts in place of a signature that is lost or never existed.
NO_SIGNATURE: Final = "skip_thought_signature_validator"


def provenance_of(signature: str | None, signer: str | None = GEMINI) -> Provenance | None:
    """Return the provenance of a part that Gemini signed, None without a signature."""
    return Provenance(signer=signer, signature=signature) if signature else None


def signature_of(provenance: Provenance | None) -> str | None:
    """Return the signature, None if there is none; OpenRouter stores it as data."""
    return None if provenance is None else provenance.signature or provenance.data
