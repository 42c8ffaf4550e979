"""Calls in a Gemini answer, complete or in pieces, and the signatures of calls and thoughts.

Each signature must be sent back to Gemini unchanged, on the part that it came with:
https://ai.google.dev/gemini-api/docs/thought-signatures (seen 2026-11-21)
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import field
from typing_extensions import override

from tollgate.core.content import Provenance, ToolCall
from tollgate.core.events import PartEnd, StreamEvent
from tollgate.core.signers import GEMINI
from tollgate.providers.codecs.gemini.arguments import Arguments
from tollgate.providers.codecs.gemini.wire import FunctionCall
from tollgate.providers.shared.parts import OpenPart, make_call_id

# The value that Google accepts in place of a missing signature.
NO_SIGNATURE: Final = "skip_thought_signature_validator"
_MADE_ID: Final = re.compile(r"gemini_[0-9a-f]{24}")


def provenance_of(signature: str | None, signer: str | None = GEMINI) -> Provenance | None:
    """Return the provenance of a signed part; None for a part without a signature."""
    return Provenance(signer=signer, signature=signature) if signature else None


def signature_of(provenance: Provenance | None) -> str | None:
    """Return a part's signature; None if it is unsigned. OpenRouter stores the
    signature in `data`.
    """
    return None if provenance is None else provenance.signature or provenance.data


def stated_id(id_: str) -> str | None:
    """Return the id if Gemini assigned it; None if the gateway created it."""
    return None if _MADE_ID.fullmatch(id_) else id_


class OpenCall(OpenPart, kw_only=True):
    """A call whose pieces are still arriving; the arguments are known only at the end."""

    arguments: Arguments = field(default_factory=Arguments)
    signature: str | None = None

    def take(self, call: FunctionCall, signature: str | None) -> None:
        """Add a piece; raise UnknownPlace if its path does not fit."""
        self.arguments.merge(call.args or {})
        for piece in call.partial_args:
            self.arguments.add(piece)
        self.signature = signature or self.signature

    @override
    def finish(self) -> Iterator[StreamEvent]:
        """Yield the complete arguments, and then the events that end the part."""
        yield self.add(self.arguments.json())
        yield PartEnd(index=self.index, provenance=provenance_of(self.signature))


def new_call(call: FunctionCall, signature: str | None, seed: bytes, number: int) -> OpenCall:
    """Return a new call; if Gemini assigned no id, derive one from `seed` and `number`."""
    id_ = call.id or make_call_id("gemini", seed, number)
    # The signature may arrive with a later piece of the call.
    signed = None if call.will_continue else provenance_of(signature)
    return OpenCall(part=ToolCall(id=id_, name=call.name or "", arguments="", provenance=signed))
