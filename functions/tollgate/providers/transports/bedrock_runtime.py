"""The transport for Bedrock's runtime API, with signed requests and AWS event streams."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import Final

import pydantic_core
from typing_extensions import override

from tollgate.aws.eventstream import EventStreamDecoder
from tollgate.aws.sigv4 import Signer
from tollgate.http1.reply import Reply
from tollgate.providers.ports.base import (
    Frame,
    ProviderRow,
    ReadyRequest,
    Timeouts,
    Transport,
    WireRequest,
)
from tollgate.providers.transports.authorization import ProviderServices, required_credentials
from tollgate.providers.transports.body_frames import JSON, BodyFrames, FrameDecoder, WholeBody
from tollgate.providers.transports.http_pool import HttpCall, ReservedCall

EVENT_STREAM: Final = "application/vnd.amazon.eventstream"


class AwsRuntime:
    """Signs a row's requests, and sends them to the `base_url` or else to a regional service."""

    def __init__(
        self, row: ProviderRow, services: ProviderServices, *, service: str, host: str
    ) -> None:
        if row.region is None:
            raise ValueError(f"provider {row.slug} has no region")
        self._slug = row.slug
        self._base_url = row.base_url or f"https://{host}.{row.region}.amazonaws.com"
        self._pool = services.pool
        credentials = required_credentials(row, services.credentials)
        self._signer = Signer(service, row.region, credentials, services.clock)

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        ready = await self._pool.reserve(self._call(request, timeouts))
        return ReadyRequest(partial(self.open, request, timeouts, ready), ready.reserved.release)

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts, ready: ReservedCall | None = None
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        async with self._pool.send(ready or self._call(request, timeouts)) as reply:
            with closing(BodyFrames(reply, self._decoder(reply, request), self._slug)) as frames:
                yield frames

    def _call(self, request: WireRequest, timeouts: Timeouts) -> HttpCall:
        url = f"{self._base_url}{self._path(request)}"
        body = pydantic_core.to_json(request.body)
        headers = {**self._headers(request), "content-type": JSON}
        return HttpCall(
            provider=self._slug,
            url=url,
            headers=self._signer.sign("POST", url, headers, body),
            body=body,
            connect_s=timeouts.connect_s,
        )

    def _path(self, request: WireRequest) -> str:
        return request.path

    def _headers(self, request: WireRequest) -> Mapping[str, str]:
        return request.headers

    @abstractmethod
    def _decoder(self, reply: Reply, request: WireRequest) -> FrameDecoder:
        """Return a new decoder for the body of a reply."""


class BedrockRuntime(AwsRuntime):
    """Sends requests to Bedrock; `frames` makes the decoder of an event stream."""

    def __init__(
        self, row: ProviderRow, services: ProviderServices, frames: Callable[[], FrameDecoder]
    ) -> None:
        super().__init__(row, services, service="bedrock", host="bedrock-runtime")
        self._frames = frames

    @override
    def _headers(self, request: WireRequest) -> Mapping[str, str]:
        accepted = EVENT_STREAM if request.reply_bytes_max is None else JSON
        return {"accept": accepted, **request.headers}

    @override
    def _decoder(self, reply: Reply, request: WireRequest) -> FrameDecoder:
        # A chat answer is an event stream; any other answer is one JSON object.
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
    """Return the transport of a row for Converse."""
    return BedrockRuntime(row, services, EventStreamFrames)
