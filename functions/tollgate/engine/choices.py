"""The choices of one attempt: asked for at once or each on its own, and told apart either way.

Codecs know one choice. Where a provider has several in one stream, its frames are sorted before
they are decoded; where it has no such thing, each choice is a request of its own.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager, closing
from itertools import chain
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.events import StreamEvent, StreamGrammar
from tollgate.core.request import GenerationRequest
from tollgate.engine.silence import SilenceLimit
from tollgate.providers.base import (
    Decoder,
    Demultiplexer,
    Frame,
    Provider,
    UpstreamRefused,
    WireRequest,
)
from tollgate.providers.unwrapping import unwrap
from tollgate.routing.planning.plan import Attempt

# An event, and the number of the choice that it belongs to.
Chosen = tuple[int, StreamEvent]

# Events that wait for a slow caller; a provider waits when they are full.
_WAITING_MAX: Final = 64


class EncodedAttempt(Struct, frozen=True, kw_only=True):
    """What one attempt asks its provider: every choice in one request, or a request for each."""

    provider: Provider
    attempt: Attempt
    wires: tuple[WireRequest, ...]
    choices: int

    @property
    def adapted(self) -> tuple[str, ...]:
        """The caller's parameters that the provider cannot take."""
        return self.wires[0].adapted


def asking(provider: Provider, attempt: Attempt, request: GenerationRequest) -> EncodedAttempt:
    """Encode a request; RequestError for what the provider can never take."""
    together = request.choices == 1 or (
        attempt.target.dialect.native_choices and provider.codec.demultiplexer is not None
    )
    asked = (request,) if together else tuple(_each_choice(request))
    wires = tuple(provider.codec.encode(one, attempt.target) for one in asked)
    return EncodedAttempt(provider=provider, attempt=attempt, wires=wires, choices=request.choices)


def _each_choice(request: GenerationRequest) -> Iterable[GenerationRequest]:
    """One request for each choice; from one seed all of them would say the same."""
    for choice in range(request.choices):
        sampling = request.sampling
        if sampling.seed is not None:
            sampling = replace(sampling, seed=sampling.seed + choice)
        yield replace(request, choices=1, sampling=sampling)


@asynccontextmanager
async def answering(asking: EncodedAttempt) -> AsyncIterator[AsyncGenerator[Chosen, None]]:
    """Send, and yield the events of all choices as they come.

    Raises UpstreamError, and so does reading. Leaving the context closes every connection.
    """
    one = len(asking.wires) == 1
    stream = _stream(asking, asking.wires[0], asking.choices) if one else _fanned_out(asking)
    async with stream as events, aclosing(events):
        yield events


@asynccontextmanager
async def _stream(
    asking: EncodedAttempt, wire: WireRequest, choices: int
) -> AsyncIterator[AsyncGenerator[Chosen, None]]:
    codec, target = asking.provider.codec, asking.attempt.target
    async with AsyncExitStack() as connection:
        try:
            frames = await connection.enter_async_context(
                asking.provider.transport.open(wire, asking.attempt.timeouts)
            )
        except UpstreamRefused as refused:
            raise codec.error(refused, target) from refused
        sorter: Demultiplexer = _OneChoice()
        if choices > 1 and codec.demultiplexer is not None:
            sorter = codec.demultiplexer(target, choices)
        decoders = [unwrap(codec.decoder(target), wire.wrapping) for _ in range(choices)]
        yield _decoded(frames, sorter, decoders, asking.attempt)


class _OneChoice:
    """The sorter of a stream that has one choice."""

    def feed(self, frame: Frame) -> Iterable[tuple[int, Frame]]:
        return ((0, frame),)


async def _decoded(
    frames: AsyncIterator[Sequence[Frame]],
    sorter: Demultiplexer,
    decoders: list[Decoder],
    attempt: Attempt,
) -> AsyncGenerator[Chosen, None]:
    """Decode frames as they come, holding each choice to the grammar and all to the idle limit."""
    grammars = [StreamGrammar() for _ in decoders]
    idle_s = attempt.timeouts.idle_s
    with closing(SilenceLimit(idle_s)) as silence:
        while True:
            try:
                together = await silence.within(anext(frames))
            except StopAsyncIteration:
                break
            except TimeoutError as late:
                raise UpstreamError(
                    ErrorCode.PROVIDER_TIMEOUT,
                    f"{attempt.target.provider} was silent for {idle_s:g} s.",
                ) from late
            for choice, own in chain.from_iterable(map(sorter.feed, together)):
                for event in decoders[choice].feed(own):
                    grammars[choice].accept(event)
                    yield choice, event
    for choice, decoder in enumerate(decoders):
        for event in decoder.end():
            grammars[choice].accept(event)
            yield choice, event


@asynccontextmanager
async def _fanned_out(asking: EncodedAttempt) -> AsyncIterator[AsyncGenerator[Chosen, None]]:
    """One stream for each choice, read side by side."""
    waiting: asyncio.Queue[Chosen | Exception | None] = asyncio.Queue(_WAITING_MAX)
    tasks = [
        asyncio.create_task(_pump(asking, choice, waiting)) for choice in range(asking.choices)
    ]
    try:
        yield _merged(waiting, asking.choices)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


async def _pump(
    asking: EncodedAttempt, choice: int, waiting: asyncio.Queue[Chosen | Exception | None]
) -> None:
    """Read one choice; what breaks goes the way of its events, and None is the end."""
    try:
        async with _stream(asking, asking.wires[choice], 1) as events, aclosing(events):
            async for _, event in events:
                await waiting.put((choice, event))
    except Exception as failure:
        await waiting.put(failure)
    else:
        await waiting.put(None)


async def _merged(
    waiting: asyncio.Queue[Chosen | Exception | None], streams: int
) -> AsyncGenerator[Chosen, None]:
    while streams:
        match await waiting.get():
            case None:
                streams -= 1
            case Exception() as failure:
                raise failure
            case chosen:
                yield chosen
