"""Shortens a conversation before answering: by the request's edits, and by a compaction.

With a compaction, there are two generations, each with its own hold, bill and record.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from functools import partial
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
from tollgate.core.request import GenerationRequest
from tollgate.engine.gateway import Call, Gateway
from tollgate.engine.replies.compacting_sink import CompactingSink
from tollgate.engine.replies.sink import EventSink
from tollgate.ingress.base import EditedContext, ParsedCall, ServedBy
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
    """Apply the edits, and compact a conversation that is still too long; return the call and the
    sink for the answer.

    A conversation is left to a provider that does the same by itself. If the summary cannot be
    generated, the error is raised, because the answer to the long conversation would be cut off or
    refused.
    """
    parsed = call.parsed
    if not isinstance(parsed, ParsedCall):
        return call, sink
    window, edits = parsed.window, parsed.edits
    parsed = replace(parsed, window=None, edits=None)
    edited: EditedContext | None = None
    if edits is not None:
        edited = await gateway.computations(call).run(partial(edits, parsed.request, _measure))
    if edited is not None and await _reads(gateway, call, edited.left_to, plan):
        edited = None
    if edited is not None:
        parsed = replace(parsed, request=edited.request)
        sink = _PrecedingEvents(sink, report=edited.report)
    if window is None or _measure(parsed.request) <= window.tokens_max:
        return replace(call, parsed=parsed), sink
    if window.left_to is not None and await _reads(gateway, call, window.left_to, plan):
        return replace(call, parsed=parsed), sink
    asked = window.ask()
    if edits is not None and edited is not None and (shorter := edits(asked, _measure)):
        asked = shorter.request
    if window.pauses:
        parsed = replace(parsed, request=asked, compacts=window.packer)
        return replace(call, parsed=parsed), sink
    written = _WrittenItem()
    compacting = CompactingSink(written, window.packer)
    first = replace(parsed, request=asked, stream=True, stored_input=None)
    new_id = gateway.ids.new_id()
    await generate(gateway, replace(call, parsed=first, request_id=new_id), compacting)
    if written.failure is not None:
        raise written.failure
    parsed = replace(parsed, request=window.resume(compacting.compacted))
    return replace(call, parsed=parsed), _PrecedingEvents(sink, item=written.item)


def _measure(request: GenerationRequest) -> int:
    return PromptSize.of(request).estimate


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


class _PrecedingEvents:
    """Sink that puts a report on edits, or a compaction item, before the answer."""

    def __init__(
        self,
        sink: EventSink,
        *,
        report: UnknownFields | None = None,
        item: Provenance | None = None,
    ) -> None:
        self._sink = sink
        self._report = report
        self._item = item

    def open(self, hold: Hold) -> AbstractAsyncContextManager[None]:
        return self._sink.open(hold)

    async def begin(self, served: ServedBy) -> None:
        await self._sink.begin(served)
        if self._report is not None:
            await self._sink.send([(0, self._report)])

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        if self._item is not None:
            events = [(choice, each) for choice, event in events for each in self._shifted(event)]
        await self._sink.send(events)

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
