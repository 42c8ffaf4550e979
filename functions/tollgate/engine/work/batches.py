"""Runs input work at one endpoint, either in batches of a size that the provider accepts or as one
stream.

An attempt with batches commits only once every batch is answered, so that a failure of any batch
can be retried or served elsewhere. After a failure, the usage of the answered batches is recorded
as a cost of the operator.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from functools import reduce
from itertools import chain
from typing import Any, Final

from msgspec import Struct

from tollgate.core.buffer_budget import Buffered
from tollgate.core.errors import BufferFull, ErrorCode, UpstreamError
from tollgate.core.events import (
    Chosen,
    ChosenGroup,
    Ended,
    Output,
    Started,
    StreamEvent,
    UsageReported,
)
from tollgate.core.usage import Usage
from tollgate.core.work.base import InputWork, WorkResult
from tollgate.engine.choices import Encoded, decode_frames, error_of, lacks_kind
from tollgate.providers.ports.base import (
    BatchCodec,
    Provider,
    StreamedWorkCodec,
    Transport,
    UpstreamRefused,
    WireRequest,
)
from tollgate.routing.planning.plan import Attempt

# Maximum number of concurrent requests in one attempt.
_BATCHES_AT_ONCE: Final = 8


class EncodedBatches(Struct, frozen=True, kw_only=True):
    """The requests of one attempt, one per batch."""

    codec: BatchCodec[Any]
    transport: Transport
    attempt: Attempt
    batches: tuple[InputWork, ...]
    wires: tuple[WireRequest, ...]

    @property
    def streams(self) -> int:
        """Always 1: a single stream has the usage of all batches."""
        return 1

    @property
    def unsupported(self) -> tuple[str, ...]:
        """The caller's parameters that the provider does not support, or does not support with
        these values.
        """
        return self.wires[0].adapted

    @property
    def adapted(self) -> tuple[str, ...]:
        """Names of options that are changed or dropped before the request reaches the provider."""
        return self.unsupported

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AsyncGenerator[Sequence[Chosen], None]]:
        """Yield the answer as one stream; reading from it sends the requests."""
        async with aclosing(self._events()) as events:
            yield events

    async def _events(self) -> AsyncGenerator[Sequence[Chosen], None]:
        slots = asyncio.Semaphore(_BATCHES_AT_ONCE)
        buffered = Buffered()
        tasks = [
            asyncio.create_task(self._ask(place, slots, buffered))
            for place in range(len(self.wires))
        ]
        results: dict[int, WorkResult] = {}
        try:
            for finished_task in asyncio.as_completed(tasks):
                place, result = await finished_task
                if isinstance(result, BufferFull):
                    # The provider did the work. An output event commits the attempt, so the caller
                    # pays.
                    yield _choose(Started(), Output(pieces=()))
                    raise result
                if isinstance(result, Exception):
                    if results:
                        yield _choose(_started(results), _sum_of_usage(results))
                    raise result
                results[place] = result
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)
        # From here on, the receiver takes the output's bytes from the budget.
        buffered.release()
        pieces = (results[place].pieces for place in range(len(tasks)))
        yield _choose(
            _started(results),
            _sum_of_usage(results),
            Output(pieces=tuple(chain.from_iterable(pieces))),
            Ended(finish="stop"),
        )

    async def _ask(
        self, place: int, slots: asyncio.Semaphore, buffered: Buffered
    ) -> tuple[int, WorkResult | Exception]:
        """Return the index of a batch with its result, or with the exception that ended it."""
        try:
            async with slots:
                result = await self._result(place)
                buffered.take(sum(map(len, result.pieces)))
                return place, result
        except Exception as failure:
            return place, failure

    async def _result(self, place: int) -> WorkResult:
        target, wire = self.attempt.target, self.wires[place]
        try:
            async with self.transport.open(wire, self.attempt.timeouts) as frames:
                async for read_frames in frames:
                    return self.codec.decode(read_frames[-1], self.batches[place], target)
        except UpstreamRefused as refused:
            raise error_of(refused, self.codec.error, target) from refused
        raise UpstreamError(
            ErrorCode.PROVIDER_UNAVAILABLE, f"{target.provider} answered without a body."
        )


class EncodedStream(Struct, frozen=True, kw_only=True):
    """The request of one attempt whose result is streamed, such as audio or a transcript."""

    codec: StreamedWorkCodec[Any]
    transport: Transport
    attempt: Attempt
    work: InputWork
    wire: WireRequest

    @property
    def streams(self) -> int:
        """Always 1."""
        return 1

    @property
    def unsupported(self) -> tuple[str, ...]:
        """The caller's parameters that the provider does not support, or does not support with
        these values.
        """
        return self.wire.adapted

    @property
    def adapted(self) -> tuple[str, ...]:
        """Names of options that are changed or dropped before the request reaches the provider."""
        return (*self.unsupported, *self.wire.unreadable)

    @asynccontextmanager
    async def open(self) -> AsyncIterator[AsyncGenerator[Sequence[ChosenGroup], None]]:
        """Send the request and yield the stream of its events as they arrive."""
        target = self.attempt.target
        async with AsyncExitStack() as connection:
            try:
                frames = await connection.enter_async_context(
                    self.transport.open(self.wire, self.attempt.timeouts)
                )
            except UpstreamRefused as refused:
                raise error_of(refused, self.codec.error, target) from refused
            decoder = self.codec.decoder(self.work, target)
            events = decode_frames(frames, None, [decoder], self.attempt)
            yield await connection.enter_async_context(aclosing(events))


def encode_work(provider: Provider, attempt: Attempt, work: InputWork) -> Encoded:
    """Encode work; raise RequestError for inputs that the provider never accepts.

    Work that fits into one request is streamed if the caller wants that and the provider is able
    to.
    """
    load = provider.batch_codecs.get(work.kind)
    load_streamed = provider.stream_codecs.get(work.kind)
    if load is None:
        if load_streamed is None:
            raise lacks_kind(attempt, work.kind)
        return _encode_streamed(load_streamed(), provider.transport, attempt, work)
    codec = load()
    batches = tuple(codec.split(work, attempt.target))
    if work.stream and load_streamed is not None and len(batches) == 1:
        return _encode_streamed(load_streamed(), provider.transport, attempt, work)
    return EncodedBatches(
        codec=codec,
        transport=provider.transport,
        attempt=attempt,
        batches=batches,
        wires=tuple(codec.encode(batch, attempt.target) for batch in batches),
    )


def _encode_streamed(
    codec: StreamedWorkCodec[Any], transport: Transport, attempt: Attempt, work: InputWork
) -> EncodedStream:
    return EncodedStream(
        codec=codec,
        transport=transport,
        attempt=attempt,
        work=work,
        wire=codec.encode(work, attempt.target),
    )


def _choose(*events: StreamEvent) -> list[Chosen]:
    """Yield the events, all for choice 0, which is the only choice."""
    return [(0, event) for event in events]


def _started(results: Mapping[int, WorkResult]) -> Started:
    first = results[min(results)]
    return Started(upstream_id=first.upstream_id, served_model=first.served_model)


def _sum_of_usage(results: Mapping[int, WorkResult]) -> UsageReported:
    """Return the sum over all batches; a field is unknown if any batch did not report it."""
    usages = [result.usage for result in results.values()]
    known = {
        name
        for name in Usage.__struct_fields__
        if all(getattr(usage, name) is not None for usage in usages)
    }
    total = reduce(Usage.plus, usages)
    raw = [results[place].raw_usage for place in sorted(results)]
    return UsageReported(
        usage=Usage(**{name: getattr(total, name) for name in known}),
        raw=raw[0] if len(raw) == 1 else raw,
    )
