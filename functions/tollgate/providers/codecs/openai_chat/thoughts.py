"""Reads reasoning from the answers of OpenAI-like servers, and writes it into later requests.

OpenRouter, Snowflake and Vercel put signatures into `reasoning_details`, which must be sent back
unchanged: https://openrouter.ai/docs/use-cases/reasoning-tokens
"""

from collections.abc import Iterable, Iterator

from msgspec import field
from msgspec.structs import replace
from typing_extensions import override

from tollgate.core.content import Reasoning, ToolCall
from tollgate.core.events import StreamEvent
from tollgate.core.json_value import JsonValue
from tollgate.core.reasoning_details import Detail, JoinedDetail, read_detail, text_of, write_detail
from tollgate.core.signers import GEMINI
from tollgate.providers.ports.base import Target
from tollgate.providers.shared.parts import OpenPart
from tollgate.providers.shared.readable import Readership


class OpenThought(OpenPart, kw_only=True):
    """Reasoning that is still arriving, with its detail in `reasoning_details`, if any."""

    signer: str | None
    detail: JoinedDetail = field(default_factory=JoinedDetail)

    def takes(self, piece: Detail) -> bool:
        """Return whether a piece belongs to this reasoning."""
        if not self.detail.is_empty:
            return self.detail.is_continued_by(piece)
        # A piece with only a signature may follow a text that arrived without details.
        return not self.length or not text_of(piece)

    def take(self, piece: Detail) -> str:
        """Add a piece and return its text."""
        self.detail.add(piece)
        return text_of(piece)

    @override
    def finish(self) -> Iterator[StreamEvent]:
        if not self.detail.is_empty:
            self.provenance = read_detail(self.detail.join(), self.signer).provenance
        return super().finish()


def open_thought(piece: Detail, signer: str | None) -> OpenThought:
    """Return new reasoning that begins with a piece of a detail, or with plain text."""
    begun = read_detail(piece, signer).provenance if piece else None
    return OpenThought(part=Reasoning(text="", provenance=begun), signer=signer)


def readership(target: Target) -> Readership:
    """Return the rules for the reasoning that a server accepts in the history, from its dialect."""
    dialect, signer = target.dialect, target.dialect.known_signer
    if dialect.reasoning_field == "reasoning_details":
        # A router that serves models of many signers tells their reasoning apart by itself.
        signers = None if signer is None else {signer}
        calls = {GEMINI} if signer in (None, GEMINI) else set()
        return Readership(model=target.model, signers=signers, unsigned="any", call_signers=calls)
    return Readership(
        model=target.model,
        signers=(),
        unsigned="none" if dialect.reasoning_field is None else "any",
        call_signers={GEMINI} if signer == GEMINI else (),
    )


def render_thoughts(
    thoughts: Iterable[Reasoning], calls: Iterable[ToolCall]
) -> dict[str, JsonValue]:
    """Return the fields of a turn for its reasoning and for the signatures of its calls."""
    parts = [*thoughts, *_signatures(calls)]
    if all(part.provenance is None for part in parts):
        text = "".join(part.text for part in parts)
        return {"reasoning": text} if text else {}
    return {"reasoning_details": [write_detail(part, index) for index, part in enumerate(parts)]}


def _signatures(calls: Iterable[ToolCall]) -> Iterator[Reasoning]:
    for call in calls:
        if call.provenance is not None:
            signature = call.provenance.signature
            proof = replace(call.provenance, signature=None, data=signature, id=call.id)
            yield Reasoning(text="", provenance=proof)
