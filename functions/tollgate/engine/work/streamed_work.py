"""Work on inputs at one endpoint whose result arrives in pieces: sound or a transcript."""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

from msgspec import Struct

from tollgate.core.events import ChosenGroup
from tollgate.core.work.base import InputWork
from tollgate.engine.choices import decode_frames, error_of
from tollgate.providers.ports.base import StreamedWorkCodec, Transport, UpstreamRefused, WireRequest
from tollgate.routing.planning.plan import Attempt


class EncodedStream(Struct, frozen=True, kw_only=True):
    """The request of one attempt."""

    codec: StreamedWorkCodec[Any]
    transport: Transport
    attempt: Attempt
    work: InputWork
    wire: WireRequest

    @property
    def streams(self) -> int:
        """Always one stream."""
        return 1

    @property
    def unsupported(self) -> tuple[str, ...]:
        """The caller's parameters that the provider does not support as they were set."""
        return self.wire.adapted

    @property
    def adapted(self) -> tuple[str, ...]:
        """The names of options that do not reach the provider as the caller sent them."""
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


def encode_streamed(
    codec: StreamedWorkCodec[Any], transport: Transport, attempt: Attempt, work: InputWork
) -> EncodedStream:
    """Encode work; raise RequestError for inputs that the provider never accepts."""
    return EncodedStream(
        codec=codec,
        transport=transport,
        attempt=attempt,
        work=work,
        wire=codec.encode(work, attempt.target),
    )
