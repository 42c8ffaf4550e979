"""Reads the body of a reply as frames."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Final, Protocol, Self

from tollgate.core.buffer_budget import Buffered
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.http1.errors import HttpError
from tollgate.http1.reply import Reply
from tollgate.providers.ports.base import Frame
from tollgate.providers.transports.http_pool import network_error

WHOLE_BODY_BYTES_MAX: Final = 8 * 1024 * 1024
END_MARK: Final = b"[DONE]"
JSON: Final = "application/json"
_NO_HEADERS: Final[Mapping[str, str]] = {}
_DRAIN_S: Final = 0.25


class FrameDecoder(Protocol):
    """Splits the bytes of one body into frames."""

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        """Return the frames that these bytes complete."""

    def end(self) -> Iterable[Frame]:
        """Return the last frames, after the end of the body."""


class WholeBody:
    """A body that is one frame, for answers that are not streamed."""

    def __init__(self, bytes_max: int | None, headers: Mapping[str, str] = _NO_HEADERS) -> None:
        self._bytes_max = bytes_max or WHOLE_BODY_BYTES_MAX
        self._headers = headers
        self._chunks: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        self._chunks.append(chunk)
        self._size += len(chunk)
        if self._size > self._bytes_max:
            raise UpstreamError(
                ErrorCode.PROVIDER_UNAVAILABLE,
                f"The provider sent a body of more than {self._bytes_max} bytes.",
            )
        return ()

    def end(self) -> Iterable[Frame]:
        return (Frame(data=b"".join(self._chunks), headers=self._headers),)


class BodyFrames:
    """Iterates over the frames of each read; the caller closes the reply and these frames.

    Bytes of an incomplete frame count as buffered until the frame is complete and the caller has
    used it.
    """

    def __init__(
        self,
        reply: Reply,
        decoder: FrameDecoder,
        provider: str,
        *,
        end_mark: bytes | None = END_MARK,
    ) -> None:
        self._reply = reply
        self._decoder = decoder
        self._provider = provider
        # The data of the frame that ends a stream; None if the format has no end marker.
        self._end_mark = end_mark
        self._ended = False
        self._marked = False
        self._broken: UpstreamError | None = None
        self._buffered = Buffered()
        self._has_completed = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Sequence[Frame]:
        together: list[Frame] = []
        while not together:
            if self._broken is not None:
                raise self._broken
            if self._marked:
                await self._drain()
            if self._marked or self._ended:
                raise StopAsyncIteration
            together = await self._read()
        return together

    def close(self) -> None:
        """Release the buffered bytes."""
        self._buffered.release()

    async def _read(self) -> list[Frame]:
        if self._has_completed:
            self._has_completed = False
            self._buffered.release()
        try:
            chunk = await self._reply.read()
        except HttpError as failure:
            raise network_error(self._provider, failure) from failure
        self._ended = not chunk
        frames: list[Frame] = []
        try:
            frames.extend(self._decoder.feed(chunk) if chunk else self._decoder.end())
            if frames:
                self._has_completed = True
            else:
                self._buffered.take(len(chunk))
        except UpstreamError as broken:
            # The frames before the broken frame are returned first, and the error is raised
            # afterwards.
            self._broken = broken
        for place, frame in enumerate(frames, start=1):
            if frame.data == self._end_mark:
                self._marked = True
                return frames[:place]
        return frames

    async def _drain(self) -> None:
        """Read to the end of the body, so that the connection can be used again.

        Errors are ignored, because the answer is already complete.
        """
        if self._reply.is_read:
            return
        with suppress(TimeoutError, HttpError):
            async with asyncio.timeout(_DRAIN_S):
                while await self._reply.read():
                    pass
