"""The body of a reply as frames, one by one as they come."""

import asyncio
from collections import deque
from collections.abc import Iterable
from contextlib import suppress
from typing import Final, Protocol, Self

import aiohttp

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.base import Frame
from tollgate.providers.transports.http_pool import network_errors

WHOLE_BODY_BYTES_MAX: Final = 8 * 1024 * 1024
END_MARK: Final = b"[DONE]"
_DRAIN_S: Final = 0.25


class FrameDecoder(Protocol):
    """Bytes to frames."""

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        """The frames that these bytes complete."""

    def end(self) -> Iterable[Frame]:
        """The frames due when the body ends."""


class WholeBody:
    """A body that is one frame, from a server that does not stream."""

    def __init__(self) -> None:
        self._body = bytearray()

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        self._body += chunk
        if len(self._body) > WHOLE_BODY_BYTES_MAX:
            raise UpstreamError(
                ErrorCode.PROVIDER_UNAVAILABLE,
                f"The provider sent a body of more than {WHOLE_BODY_BYTES_MAX} bytes.",
            )
        return ()

    def end(self) -> Iterable[Frame]:
        return (Frame(data=bytes(self._body)),)


class BodyFrames:
    """Iterates over the frames of a reply; the reply's context closes it, not this."""

    def __init__(
        self, response: aiohttp.ClientResponse, decoder: FrameDecoder, provider: str
    ) -> None:
        self._content = response.content
        self._decoder = decoder
        self._provider = provider
        self._ready: deque[Frame] = deque()
        self._ended = False
        self._broken: UpstreamError | None = None

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Frame:
        while not self._ready:
            if self._broken is not None:
                raise self._broken
            if self._ended:
                raise StopAsyncIteration
            await self._read()
        frame = self._ready.popleft()
        if frame.data == END_MARK:
            self._ended = True
            self._ready.clear()
            await self._drain()
        return frame

    async def _read(self) -> None:
        with network_errors(self._provider):
            chunk = await self._content.readany()
        self._ended = not chunk
        try:
            self._ready.extend(self._decoder.feed(chunk) if chunk else self._decoder.end())
        except UpstreamError as broken:
            # Only chance put the frames before it into the same read: they still count.
            self._broken = broken

    async def _drain(self) -> None:
        """Read up to the end of the body, which lets the connection serve another call.

        The answer is complete, so nothing that goes wrong from here on matters to it.
        """
        with suppress(TimeoutError, aiohttp.ClientError, OSError):
            async with asyncio.timeout(_DRAIN_S):
                while await self._content.readany():
                    pass
