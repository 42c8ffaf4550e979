"""The requests for the choices (`n`) of one attempt, and the stream of their events.

A codec decodes a single choice. If a provider sends several choices in one stream, the frames are
demultiplexed first. If a provider does not support `n`, each choice is requested separately.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable, Sequence
from contextlib import (
    AbstractAsyncContextManager,
    AsyncExitStack,
    aclosing,
    asynccontextmanager,
    closing,
)
from itertools import chain
from operator import attrgetter
from typing import Final, Protocol

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.buffer_budget import take
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import (
    ChosenGroup,
    Grouped,
    Output,
    PartDelta,
    PartDeltas,
    Partial,
    PartStart,
    StreamGrammar,
)
from tollgate.core.request import GenerationRequest
from tollgate.core.response import buffered_size
from tollgate.core.service_tiers import DEFAULT_TIER, plain_tier
from tollgate.core.work.kinds import WorkKind
from tollgate.engine.silence import SilenceLimit
from tollgate.providers.ports.base import (
    Codec,
    Decoder,
    Demultiplexer,
    Frame,
    Provider,
    ReadDecoder,
    ReadyRequest,
    Target,
    Transport,
    UpstreamRefused,
    WireRequest,
)
from tollgate.providers.ports.unwrapping import encode_request, make_decoder
from tollgate.routing.planning.plan import Attempt

# Imported at first use, because only provider errors need this function.
_REDACT_BODY: Final = DottedName[Callable[[bytes], str]](
    "tollgate.providers.shared.refusals:redact_body"
)

# Limit on queued reads when one attempt sends several requests. While the queue is full, nothing
# more is read from providers, so a slow caller cannot exhaust memory.
_WAITING_MAX: Final = 16
# Upper estimate of the size of a frame without its content; most providers need 200 to 400 bytes.
_FRAME_BYTES: Final = 1024
_DATA: Final = attrgetter("data")
_Waiting = asyncio.Queue[Sequence[ChosenGroup] | Exception | None]


class Encoded(Protocol):
    """The encoded requests of one attempt, for any kind of work."""

    @property
    def streams(self) -> int:
        """Number of streams; each reports its own usage."""

    @property
    def unsupported(self) -> tuple[str, ...]:
        """The caller's parameters that the provider does not support, or does not support with
        these values.
        """

    @property
    def adapted(self) -> tuple[str, ...]:
        """Names of options that are changed or dropped before the request reaches the provider."""

    def open(self) -> AbstractAsyncContextManager[AsyncGenerator[Sequence[ChosenGroup], None]]:
        """Send the requests and yield one stream with the events of all choices, as they arrive.

        Events from the same read stay together. Entering the context and reading from it may both
        raise UpstreamError. Leaving the context closes every connection.
        """


class EncodedAttempt(Struct, frozen=True, kw_only=True):
    """The requests of one attempt, encoded for its provider."""

    codec: Codec
    transport: Transport
    attempt: Attempt
    wires: tuple[WireRequest, ...]
    """One request per conversation, or one per choice if the provider does not support `n`."""
    choices: int
    """Total number of choices in all requests."""
    is_capped: bool
    """True if the caller's output limit is replaced by the model's lower one."""
    lacks_tier: bool = False
    """True if the endpoint has no price for the service tier that the caller asks for."""

    @property
    def streams(self) -> int:
        """Number of streams; each reports its own usage."""
        return len(self.wires)

    @property
    def choices_per_wire(self) -> int:
        """Number of choices in each request."""
        return self.choices // len(self.wires)

    @property
    def unsupported(self) -> tuple[str, ...]:
        """The caller's parameters that the provider does not support, or does not support with
        these values.
        """
        return (*self.wires[0].adapted, *(("service_tier",) if self.lacks_tier else ()))

    @property
    def adapted(self) -> tuple[str, ...]:
        """Names of options that are changed or dropped before the request reaches the provider."""
        capped = ("max_tokens",) if self.is_capped else ()
        return (*self.unsupported, *capped, *self.wires[0].unreadable)

    async def make_ready(self) -> ReadyRequest:
        """Connect the only request without sending it, and return it; raise UpstreamError on
        failure.
        """
        [wire] = self.wires
        return await self.transport.make_ready(wire, self.attempt.timeouts)

    def open(
        self, ready: Awaitable[ReadyRequest] | None = None
    ) -> AbstractAsyncContextManager[AsyncGenerator[Sequence[ChosenGroup], None]]:
        """Send the requests as described in `Encoded.open`; `ready` is a request from
        `make_ready`.
        """
        return _stream(self, self.wires[0], ready) if self.streams == 1 else _fan_out(self)


def encode_attempt(
    provider: Provider, attempt: Attempt, request: GenerationRequest
) -> EncodedAttempt:
    """Encode a request; raise RequestError for content that the provider never accepts."""
    codec = provider.codec
    if codec is None:
        raise lacks_kind(attempt, request.kind)
    lacks_tier = False
    if attempt.service_tiers:
        asked, tier = plain_tier(request.service_tier), attempt.service_tier or DEFAULT_TIER
        lacks_tier = asked not in (None, tier)
        # Without a tier, a project of OpenAI's may serve a dearer one.
        request = replace(request, service_tier=tier)
    in_one_request = request.choices == 1 or (
        attempt.target.dialect.native_choices and codec.demultiplexer is not None
    )
    requests = [
        part_request
        for conversation in _split_conversations(request)
        for part_request in ((conversation,) if in_one_request else _split_choices(conversation))
    ]
    wires = tuple(encode_request(codec, part_request, attempt.target) for part_request in requests)
    requested_max, limit = request.output_tokens_max, attempt.target.output_tokens_max
    return EncodedAttempt(
        codec=codec,
        transport=provider.transport,
        attempt=attempt,
        wires=wires,
        choices=request.answers,
        is_capped=requested_max is not None and limit is not None and limit < requested_max,
        lacks_tier=lacks_tier,
    )


def _split_conversations(request: GenerationRequest) -> Iterable[GenerationRequest]:
    if not request.further:
        return (request,)
    return (replace(request, messages=each, further=()) for each in request.conversations)


def _split_choices(request: GenerationRequest) -> Iterable[GenerationRequest]:
    """Yield one request per choice, each with a different seed so that the answers differ."""
    for choice in range(request.choices):
        sampling = request.sampling
        if sampling.seed is not None:
            sampling = replace(sampling, seed=sampling.seed + choice)
        yield replace(request, choices=1, sampling=sampling)


def lacks_kind(attempt: Attempt, kind: WorkKind) -> UpstreamError:
    """Return the error for an endpoint that does not support a kind of work."""
    return UpstreamError(
        ErrorCode.PROVIDER_UNAVAILABLE, f"{attempt.target.provider} does not serve {kind}."
    )


@asynccontextmanager
async def _stream(
    encoded: EncodedAttempt, wire: WireRequest, ready: Awaitable[ReadyRequest] | None = None
) -> AsyncIterator[AsyncGenerator[Sequence[ChosenGroup], None]]:
    codec, target = encoded.codec, encoded.attempt.target
    choices = encoded.choices_per_wire
    async with AsyncExitStack() as connection:
        try:
            opening = (
                encoded.transport.open(wire, encoded.attempt.timeouts)
                if ready is None
                else (await ready).open()
            )
            frames = await connection.enter_async_context(opening)
        except UpstreamRefused as refused:
            raise error_of(refused, codec.error, target) from refused
        demultiplexer: Demultiplexer | None = None
        if choices > 1 and codec.demultiplexer is not None:
            demultiplexer = codec.demultiplexer(target, choices)
        decoders = [make_decoder(codec, target, wire.wrapping) for _ in range(choices)]
        events = decode_frames(frames, demultiplexer, decoders, encoded.attempt)
        yield await connection.enter_async_context(aclosing(events))


def error_of(
    refused: UpstreamRefused,
    translate: Callable[[UpstreamRefused, Target], UpstreamError],
    target: Target,
) -> UpstreamError:
    """Return the public error for an error reply, with the provider's message attached."""
    error = translate(refused, target)
    error.provider_words = error.provider_words or _REDACT_BODY()(refused.body)
    error.body = refused.body
    return error


async def decode_frames(
    frames: AsyncIterator[Sequence[Frame]],
    demultiplexer: Demultiplexer | None,
    decoders: list[Decoder],
    attempt: Attempt,
) -> AsyncGenerator[Sequence[ChosenGroup], None]:
    """Decode frames as they arrive, and raise UpstreamError if the stream is idle for too long.

    Each item has the events of one read. A stream with one choice needs no demultiplexer.
    """
    choices = _Decoders(demultiplexer, decoders)
    idle_s = attempt.timeouts.idle_s
    with closing(SilenceLimit(idle_s)) as silence:
        while True:
            try:
                read_frames = await silence.wait_for(anext(frames))
            except StopAsyncIteration:
                break
            except TimeoutError as late:
                raise UpstreamError(
                    ErrorCode.PROVIDER_TIMEOUT,
                    f"{attempt.target.provider} was silent for {idle_s:g} s.",
                ) from late
            events: list[ChosenGroup] = []
            try:
                choices.feed(read_frames, events)
                if withheld := _find_withheld(read_frames, events):
                    take(withheld)
            except Exception:
                # Yield the events before the broken frame, because the provider did send them.
                yield events
                raise
            yield events
    events = []
    try:
        choices.end(events)
    except Exception:
        yield events
        raise
    yield events


def _find_withheld(frames: Sequence[Frame], events: Sequence[ChosenGroup]) -> int:
    """Return the number of bytes of a read that the decoder has buffered for later events.

    The decoder buffers signatures, for instance, and tool arguments that are delivered as a whole.
    """
    unseen = sum(map(len, map(_DATA, frames))) - _FRAME_BYTES * len(frames)
    if unseen <= 0:
        return 0
    # Doubled, because base64-encoded audio is larger than the bytes in its event.
    return max(0, unseen - 2 * sum(_content_size(event) for _, event in events))


def _content_size(event: Grouped) -> int:
    match event:
        case PartDelta() | PartDeltas() | Output() | PartStart():
            return buffered_size(event)
        case Partial(piece=piece):
            return len(piece)
        case _:
            return 0


class _Decoders:
    """The decoders for the choices of one stream; events before a failure stay in the caller's
    list.
    """

    def __init__(self, demultiplexer: Demultiplexer | None, decoders: list[Decoder]) -> None:
        self._demultiplexer = demultiplexer
        self._decoders = decoders
        self._grammars = [StreamGrammar() for _ in decoders]
        first = decoders[0]
        self._of_reads = first if isinstance(first, ReadDecoder) else None

    def feed(self, frames: Sequence[Frame], events: list[ChosenGroup]) -> None:
        """Decode the frames of one read, and append their events."""
        if self._demultiplexer is None:
            decoded: Iterable[Grouped]
            if self._of_reads is not None and len(frames) > 1:
                decoded = self._of_reads.feed_read(frames)
            else:
                decoded = chain.from_iterable(map(self._decoders[0].feed, frames))
            self._check(0, decoded, events)
            return
        for choice, own in chain.from_iterable(map(self._demultiplexer.feed, frames)):
            self._check(choice, self._decoders[choice].feed(own), events)

    def end(self, events: list[ChosenGroup]) -> None:
        """Append the events that end the stream."""
        for choice, decoder in enumerate(self._decoders):
            self._check(choice, decoder.end(), events)

    def _check(self, choice: int, decoded: Iterable[Grouped], events: list[ChosenGroup]) -> None:
        accept = self._grammars[choice].accept
        # The previous event if it was a delta, and the group that this delta is in.
        before: PartDelta | None = None
        group: PartDeltas | None = None
        for event in decoded:
            if type(event) is PartDelta:
                if before is not None and before.index == event.index:
                    if group is None:
                        group = PartDeltas(index=event.index, texts=[before.text])
                        events[-1] = (choice, group)
                    group.texts.append(event.text)
                    continue
                before, group = event, None
            else:
                before = None
            accept(event)
            events.append((choice, event))


@asynccontextmanager
async def _fan_out(
    encoded: EncodedAttempt,
) -> AsyncIterator[AsyncGenerator[Sequence[ChosenGroup], None]]:
    """Open one stream per request, and yield the events in the order in which they arrive."""
    queue: _Waiting = asyncio.Queue(_WAITING_MAX)
    tasks = [
        asyncio.create_task(_pump(encoded, place, queue)) for place in range(len(encoded.wires))
    ]
    try:
        async with aclosing(_merge(queue, len(encoded.wires))) as events:
            yield events
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _pump(encoded: EncodedAttempt, place: int, queue: _Waiting) -> None:
    """Queue the events of one request, then None or the exception that ended its stream."""
    first = place * encoded.choices_per_wire
    try:
        async with _stream(encoded, encoded.wires[place]) as events:
            async for read_events in events:
                await queue.put([(first + choice, event) for choice, event in read_events])
    except Exception as failure:
        await queue.put(failure)
    else:
        await queue.put(None)


async def _merge(queue: _Waiting, streams: int) -> AsyncGenerator[Sequence[ChosenGroup], None]:
    while streams:
        match await queue.get():
            case None:
                streams -= 1
            case Exception() as failure:
                raise failure
            case read_events:
                yield read_events
