"""Thought signatures, which Gemini requires back untouched with the part that had them.

https://ai.google.dev/gemini-api/docs/thought-signatures (seen 2026-11-21)
"""

from typing import Final

from tollgate.core.content import Opaque

# The value that Google accepts in place of a signature that is lost, or was never Gemini's.
NO_SIGNATURE: Final = "skip_thought_signature_validator"

_OWNER: Final = "gemini"
_SIGNATURE: Final = "thought_signature"


def opaque_of(signature: str | None) -> Opaque:
    """Return a signature as the opaque data of its part."""
    return {_OWNER: {_SIGNATURE: signature}} if signature else {}


def signature_of(opaque: Opaque) -> str | None:
    """Return the signature in a part's opaque data, None if it is not Gemini's."""
    kept = opaque.get(_OWNER)
    signature = kept.get(_SIGNATURE) if isinstance(kept, dict) else None
    return signature if isinstance(signature, str) and signature else None
