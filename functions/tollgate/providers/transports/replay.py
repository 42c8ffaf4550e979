"""Frames from a list instead of a network."""

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

from tollgate.providers.base import Frame, Timeouts, UpstreamRefused, WireRequest


class ReplayTransport:
    """Answers every request with the same frames, or refusal; `requests` keeps what was sent.

    `failure` is raised in place of the frame that would follow the last one.
    """

    def __init__(
        self,
        frames: Sequence[Frame] = (),
        *,
        refused: UpstreamRefused | None = None,
        failure: Exception | None = None,
    ) -> None:
        self.requests: list[WireRequest] = []
        self._frames = frames
        self._refused = refused
        self._failure = failure

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        self.requests.append(request)
        if self._refused is not None:
            raise self._refused
        yield self._replayed()

    async def _replayed(self) -> AsyncIterator[Sequence[Frame]]:
        for frame in self._frames:
            yield (frame,)
        if self._failure is not None:
            raise self._failure
