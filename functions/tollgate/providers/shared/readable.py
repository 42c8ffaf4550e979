"""Removes reasoning and images that a provider cannot read from the history of a request."""

from collections.abc import Collection, Iterator
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.compaction import FOREWORD
from tollgate.core.content import MadeImage, Provenance, Reasoning, Text, ToolCall
from tollgate.core.request import (
    AssistantContent,
    AssistantMessage,
    GenerationRequest,
    Message,
    UserMessage,
)
from tollgate.core.signers import BOUND_TO_MODEL

# The names of the parts that are left out, for `x-tollgate-adapted`.
_PLAIN = "messages[].reasoning"
_SIGNED = "messages[].reasoning_details"
_CALLS = "messages[].tool_calls[].extra_content"
_IMAGES = "messages[].images"


class Readership(Struct, frozen=True, kw_only=True):
    """The reasoning that one endpoint of a model accepts in the history."""

    model: str
    signers: Collection[str | None] | None
    """The signers whose reasoning is accepted; None for all signers."""
    unsigned: Literal["none", "own", "any"] = "none"
    """The unsigned reasoning that is accepted: none, reasoning by one of `signers`, or any."""
    call_signers: Collection[str | None] = ()
    """The signers whose signed tool calls are accepted."""
    images: bool = False
    """True if assistant turns may contain the images that a model made."""

    def reads(self, provenance: Provenance) -> bool:
        """Return whether the endpoint accepts reasoning of this signer and (if the signer binds
        reasoning to a model) of this model.
        """
        if provenance.signer in BOUND_TO_MODEL and provenance.model not in (None, self.model):
            return False
        return self.signers is None or provenance.signer in self.signers


def keep_readable(
    request: GenerationRequest, readership: Readership
) -> tuple[GenerationRequest, tuple[str, ...]]:
    """Return the request without unreadable parts, and the names of the parts left out.

    An endpoint that accepts any unsigned reasoning gets the text of other signers' reasoning
    without the signature.
    """
    lost: set[str] = set()
    messages: list[Message] = []
    for message in request.messages:
        if isinstance(message, AssistantMessage) and any(map(_has_provenance, message.content)):
            messages += _readable(message, readership, lost)
        else:
            messages.append(message)
    if not lost:
        return request, ()
    return replace(request, messages=tuple(messages)), tuple(sorted(lost))


def _has_provenance(part: AssistantContent) -> bool:
    return isinstance(part, Reasoning | MadeImage) or (
        isinstance(part, ToolCall) and part.provenance is not None
    )


def _readable(
    message: AssistantMessage, readership: Readership, lost: set[str]
) -> Iterator[Message]:
    if (record := _record(message, readership)) is not None:
        lost.add(_SIGNED)
        yield UserMessage(content=(Text(text=FOREWORD + record),))
        message = replace(message, content=message.content[1:])
        if not message.content:
            return
    content = tuple(_parts(message, readership, lost))
    # A turn whose only content was unreadable reasoning must not become empty.
    yield replace(message, content=content or (Text(text=""),))


def _record(message: AssistantMessage, readership: Readership) -> str | None:
    """Return the record in a compaction block that the endpoint cannot read; None if there is none.

    The block comes first, because its format drops what is before it.
    """
    match message.content[0]:
        case Reasoning(text=text, provenance=Provenance(is_compaction=True) as provenance) if text:
            return None if readership.reads(provenance) else text
        case _:
            return None


def _parts(
    message: AssistantMessage, readership: Readership, lost: set[str]
) -> Iterator[AssistantContent]:
    proven = {
        part.provenance.id
        for part in message.content
        if isinstance(part, Reasoning) and part.provenance and part.provenance.is_signed
    } - {None}
    for part in message.content:
        match part:
            case Reasoning():
                yield from _thoughts(part, readership, proven, lost)
            case MadeImage() if not readership.images:
                lost.add(_IMAGES)
            case ToolCall(provenance=Provenance() as provenance):
                if provenance.signer in readership.call_signers:
                    yield part
                else:
                    lost.add(_CALLS)
                    yield replace(part, provenance=None)
            case _:
                yield part


def _thoughts(
    part: Reasoning, readership: Readership, proven: Collection[str | None], lost: set[str]
) -> Iterator[Reasoning | Text]:
    provenance = part.provenance
    if provenance is None:
        if readership.unsigned == "any":
            yield part
        elif part.text:
            lost.add(_PLAIN)
        return
    is_signed = provenance.is_signed or provenance.id in proven
    if readership.reads(provenance) and (is_signed or readership.unsigned != "none"):
        yield part
        return
    if not part.text and not is_signed:
        return
    if readership.unsigned == "any" and part.text:
        # The endpoint accepts plain text only, so the provenance is dropped.
        yield Reasoning(text=part.text)
        if not is_signed:
            return
    lost.add(_SIGNED)
