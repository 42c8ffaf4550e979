"""Compacts a conversation before answering. These are two generations, each with its own hold, bill
and record.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import assert_never

from msgspec.structs import replace

from tollgate.core.content import Provenance, Reasoning
from tollgate.core.errors import GatewayError
from tollgate.core.events import (
    ChosenGroup,
    Ended,
    Grouped,
    Output,
    PartDelta,
    PartDeltas,
    PartEnd,
    Partial,
    PartNote,
    PartStart,
    Started,
    UnknownFields,
    UsageReported,
)
from tollgate.core.records.generation import GenerationRecord
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.replies.compacting_sink import CompactingSink
from tollgate.engine.replies.sink import EventSink
from tollgate.ingress.base import ParsedCall, ServedBy
from tollgate.providers.ports.formats import WIRE_FORMATS
from tollgate.routing.planning.plan import Plan
from tollgate.routing.planning.planning_request import PlanningRequest
from tollgate.routing.planning.prompt_size import PromptSize
from tollgate.stores.ports.base import Hold

_Generate = Callable[[Gateway, Call, EventSink], Awaitable[None]]
_Plan = Callable[[Gateway, Call, None], Awaitable[tuple[PlanningRequest, Plan]]]


async def compact_window(
    gateway: Gateway, call: Call, sink: EventSink, *, generate: _Generate, plan: _Plan
) -> tuple[Call, EventSink]:
    """Compact the conversation if it is too long; return the call and the sink for the answer.

    A conversation is left to a provider that compacts by itself. If the summary cannot be
    generated, the error is raised, because the answer to the long conversation would be cut off or
    refused.
    """
    parsed = call.parsed
    if not isinstance(parsed, ParsedCall) or parsed.window is None:
        return call, sink
    window, parsed = parsed.window, replace(parsed, window=None)
    if PromptSize.of(parsed.request).estimate <= window.tokens_max:
        return replace(call, parsed=parsed), sink
    if window.left_to is not None and await _reads(gateway, call, window.left_to, plan):
        return replace(call, parsed=parsed), sink
    if window.pauses:
        parsed = replace(parsed, request=window.ask(), compacts=window.packer)
        return replace(call, parsed=parsed), sink
    written = _WrittenItem()
    compacting = CompactingSink(written, window.packer)
    first = replace(parsed, request=window.ask(), stream=True, stored_input=None)
    new_id = gateway.ids.new_id()
    await generate(gateway, replace(call, parsed=first, request_id=new_id), compacting)
    if written.failure is not None:
        raise written.failure
    parsed = replace(parsed, request=window.resume(compacting.compacted))
    return replace(call, parsed=parsed), _PrecedingItem(sink, written.item)


async def _reads(gateway: Gateway, call: Call, signer: str, plan: _Plan) -> bool:
    """Return whether the first endpoint of the plan reads what the signer has signed."""
    try:
        _, planned = await plan(gateway, call, None)
    except GatewayError:
        return False  # The prompt may be too long for every model.
    row = gateway.planner.catalog.providers[planned.attempts[0].target.provider]
    return signer in WIRE_FORMATS[row.codec].other_signers


class _WrittenItem:
    """Sink that stores the compaction item of a generation, or its failure."""

    def __init__(self) -> None:
        self.item: Provenance | None = None
        self.failure: GatewayError | None = None

    def open(self, hold: Hold) -> AbstractAsyncContextManager[None]:
        return nullcontext()

    async def begin(self, served: ServedBy) -> None:
        pass

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        for _, event in events:
            if isinstance(event, PartEnd):
                self.item = event.provenance

    async def finish(self, record: GenerationRecord) -> None:
        pass

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        self.failure = error


class _PrecedingItem:
    """Sink that puts a compaction item before the answer."""

    def __init__(self, sink: EventSink, item: Provenance | None) -> None:
        self._sink = sink
        self._item = item

    def open(self, hold: Hold) -> AbstractAsyncContextManager[None]:
        return self._sink.open(hold)

    async def begin(self, served: ServedBy) -> None:
        await self._sink.begin(served)

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        await self._sink.send(
            [(choice, shifted) for choice, event in events for shifted in self._shifted(event)]
        )

    def _shifted(self, event: Grouped) -> Iterator[Grouped]:
        """Yield an event with its part index increased by 1, since the item is part 0."""
        match event:
            case Started():
                yield event
                yield PartStart(index=0, part=Reasoning(text="", provenance=self._item))
                yield PartEnd(index=0, provenance=self._item)
            case PartStart() | PartDelta() | PartDeltas() | PartNote() | PartEnd():
                yield replace(event, index=event.index + 1)
            case UsageReported() | UnknownFields() | Output() | Partial() | Ended():
                yield event
            case _:
                assert_never(event)

    async def finish(self, record: GenerationRecord) -> None:
        await self._sink.finish(record)

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        await self._sink.fail(error, record)
