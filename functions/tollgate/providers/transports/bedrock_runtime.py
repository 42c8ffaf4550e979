"""Bedrock's runtime API: signed requests, and answers in event-stream framing."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Final

import pydantic_core

from tollgate.aws.eventstream import EventStreamDecoder
from tollgate.aws.sigv4 import Credentials, Signer
from tollgate.core.clock import Clock
from tollgate.http1.reply import Reply
from tollgate.providers.ports.base import (
    Frame,
    ProviderRow,
    ReadyRequest,
    Timeouts,
    Transport,
    WireRequest,
)
from tollgate.providers.transports.authorization import required_credentials
from tollgate.providers.transports.body_frames import JSON, BodyFrames, FrameDecoder, WholeBody
from tollgate.providers.transports.http_pool import HttpCall, HttpPool, ReservedCall
from tollgate.providers.transports.provider_services import ProviderServices

EVENT_STREAM: Final = "application/vnd.amazon.eventstream"


class BedrockRuntime:
    """Sends the requests of one row to its region, or to `base_url` in place of the region.

    `frames` makes the decoder of an answer; by default each event-stream message is a frame.
    """

    def __init__(
        self,
        row: ProviderRow,
        pool: HttpPool,
        credentials: Callable[[], Credentials | None],
        clock: Clock,
        *,
        frames: Callable[[], FrameDecoder] | None = None,
    ) -> None:
        if row.region is None:
            raise ValueError(f"provider {row.slug} has no region")
        self._slug = row.slug
        self._base_url = row.base_url or f"https://bedrock-runtime.{row.region}.amazonaws.com"
        self._pool = pool
        self._frames = frames or EventStreamFrames
        self._signer = Signer(
            "bedrock", row.region, required_credentials(row.slug, credentials), clock
        )

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        ready = await self._pool.reserve(self._call(request, timeouts))
        return ReadyRequest(partial(self.open, request, timeouts, ready), ready.reserved.release)

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts, ready: ReservedCall | None = None
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        async with self._pool.send(ready or self._call(request, timeouts)) as reply:
            yield BodyFrames(reply, self._decoder(reply, request), self._slug)

    def _call(self, request: WireRequest, timeouts: Timeouts) -> HttpCall:
        url = f"{self._base_url}{request.path}"
        body = pydantic_core.to_json(request.body)
        headers = {
            "accept": EVENT_STREAM if request.reply_bytes_max is None else JSON,
            **request.headers,
            "content-type": "application/json",
        }
        return HttpCall(
            provider=self._slug,
            url=url,
            headers=self._signer.sign("POST", url, headers, body),
            body=body,
            connect_s=timeouts.connect_s,
        )

    def _decoder(self, reply: Reply, request: WireRequest) -> FrameDecoder:
        # A chat answer is an event stream; other results and token counts are one object.
        if request.reply_bytes_max is None and reply.content_type != JSON:
            return self._frames()
        return WholeBody(request.reply_bytes_max, reply.headers)


class EventStreamFrames:
    """Decodes event-stream messages into frames."""

    def __init__(self) -> None:
        self._decoder = EventStreamDecoder()

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        for message in self._decoder.feed(chunk):
            yield Frame(data=message.payload, event=message.event, exception=message.exception)

    def end(self) -> Iterable[Frame]:
        self._decoder.end()
        return ()


def make_bedrock_runtime(row: ProviderRow, services: ProviderServices) -> Transport:
    """Return the transport of a row, which signs with the gateway's AWS identity."""
    return BedrockRuntime(row, services.pool, services.credentials, services.clock)
