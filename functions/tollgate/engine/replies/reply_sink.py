"""Builds the sink for a reply, which may be streamed or not, and may contain one tool call or all
of them.
"""

from collections.abc import Callable, Sequence
from contextlib import AbstractAsyncContextManager

from msgspec.structs import replace

from tollgate.core.content import ToolCall
from tollgate.core.errors import GatewayError
from tollgate.core.events import (
    ChosenGroup,
    PartDelta,
    PartEnd,
    PartNote,
    PartStart,
    StreamEvent,
    ungroup,
)
from tollgate.core.records.generation import GenerationRecord
from tollgate.engine.gateway import Gateway
from tollgate.engine.replies.sink import CollectSink, EventSink, Headers, ReplyWriter, SseSink
from tollgate.ingress.base import NO_HEADERS, Ingress, ParsedWork, ServedBy
from tollgate.stores.ports.base import Hold


def reply_sink(
    gateway: Gateway,
    reply: ReplyWriter,
    ingress: Ingress,
    parsed: ParsedWork,
    *,
    headers: Headers = NO_HEADERS,
    around: Callable[[EventSink], EventSink] | None = None,
) -> EventSink:
    """Return the sink for the kind of reply that the caller requested.

    `headers` are used until `open` replaces them with the headers of the hold. `around` wraps the
    sink in another one, which receives the same events as the caller.
    """
    sink: EventSink
    if parsed.stream:
        sink = SseSink(
            reply,
            ingress,
            parsed,
            clock=gateway.clock,
            timing=gateway.timing,
            credits_per_usd=gateway.credits_per_usd,
            headers=headers,
        )
    else:
        sink = CollectSink(
            reply,
            ingress,
            parsed,
            side=gateway.side,
            credits_per_usd=gateway.credits_per_usd,
            headers=headers,
        )
    if around is not None:
        sink = around(sink)
    request = parsed.request
    return SingleCallSink(sink, request.answers) if request.wants_single_call else sink


class SingleCallSink:
    """A sink that forwards only the first tool call of each choice.

    It is used whenever a caller asks for single calls, because some providers do not have that
    option and others ignore it.
    """

    def __init__(self, sink: EventSink, answers: int) -> None:
        self._sink = sink
        self._choices = [FirstCall() for _ in range(answers)]

    def open(self, hold: Hold) -> AbstractAsyncContextManager[None]:
        return self._sink.open(hold)

    async def begin(self, served: ServedBy) -> None:
        await self._sink.begin(served)

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        selected = (
            (choice, self._choices[choice].select(event)) for choice, event in ungroup(events)
        )
        await self._sink.send([(choice, event) for choice, event in selected if event is not None])

    async def finish(self, record: GenerationRecord) -> None:
        await self._sink.finish(record)

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        await self._sink.fail(error, record)


class FirstCall:
    """A filter for the events of one choice, which renumbers the remaining parts without gaps."""

    def __init__(self) -> None:
        # New index of each part; None for a withheld call.
        self._indexes: list[int | None] = []
        self._delivered = 0
        self._has_call = False

    def select(self, event: StreamEvent) -> StreamEvent | None:
        """Return the event with its new index; None if the event belongs to a withheld call."""
        match event:
            case PartDelta() | PartNote() | PartEnd():
                index = self._indexes[event.index]
            case PartStart(part=part):
                index = self._place(withheld=isinstance(part, ToolCall) and self._has_call)
                self._has_call = self._has_call or isinstance(part, ToolCall)
            case _:
                return event
        if index is None:
            return None
        return event if index == event.index else replace(event, index=index)

    def _place(self, *, withheld: bool) -> int | None:
        index = None if withheld else self._delivered
        self._indexes.append(index)
        if index is not None:
            self._delivered += 1
        return index
