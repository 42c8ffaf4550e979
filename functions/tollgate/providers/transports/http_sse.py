"""The transport for JSON requests over HTTP, answered with server-sent events, JSON or audio."""

from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, closing
from functools import partial
from typing import Final

import pydantic_core

from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.http1.reply import Reply
from tollgate.providers.ports.base import (
    SIGNED_SERVICES,
    Frame,
    ProviderRow,
    ReadyRequest,
    Timeouts,
    Transport,
    WireRequest,
)
from tollgate.providers.transports.authorization import (
    Authorization,
    AwsSignature,
    KeyHeader,
    ProviderServices,
)
from tollgate.providers.transports.body_frames import JSON, BodyFrames, FrameDecoder, WholeBody
from tollgate.providers.transports.http_pool import HttpCall, HttpPool, ReservedCall
from tollgate.providers.transports.sse import SseDecoder

EVENTS: Final = "text/event-stream"
# Imported with the first Google Cloud row, because other rows only have a key in a header.
_GOOGLE_TOKEN: Final = DottedName[Callable[[ProviderRow, ProviderServices], Authorization]](
    "tollgate.providers.transports.google_token:make_google_token"
)


class HttpSse:
    """Sends the requests of one row to `base_url`."""

    def __init__(self, row: ProviderRow, pool: HttpPool, authorization: Authorization) -> None:
        self._row = row
        self._pool = pool
        self._authorization = authorization

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        ready = await self._pool.reserve(await self._call(request, timeouts))
        return ReadyRequest(partial(self.open, request, timeouts, ready), ready.reserved.release)

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts, ready: ReservedCall | None = None
    ) -> AsyncIterator[AsyncIterator[Sequence[Frame]]]:
        async with self._pool.send(ready or await self._call(request, timeouts)) as reply:
            encoding = reply.headers.get("content-encoding", "identity")
            if encoding.lower() != "identity":
                raise UpstreamError(
                    ErrorCode.PROVIDER_UNAVAILABLE,
                    f"The provider {self._row.slug} answered in a content-encoding"
                    " that was not requested.",
                )
            if request.is_raw:
                self._check_bytes(reply.content_type)
                body = BodyFrames(reply, RawFrames(), self._row.slug, end_mark=None)
            else:
                body = BodyFrames(reply, _decoder(reply, request), self._row.slug)
            with closing(body) as frames:
                yield frames

    async def _call(self, request: WireRequest, timeouts: Timeouts) -> HttpCall:
        accepted = EVENTS if request.reply_bytes_max is None else JSON
        url = f"{self._row.base_url}{request.path}"
        body = pydantic_core.to_json(request.body)
        headers = {
            "accept": "*/*" if request.is_raw else accepted,
            **request.headers,
            # `encode_form` sets the content type of a form, with the boundary.
            **({} if request.form else {"content-type": JSON}),
        }
        return HttpCall(
            provider=self._row.slug,
            url=url,
            headers=await self._authorization.authorize(url, headers, body),
            body=body,
            connect_s=timeouts.connect_s,
            form=request.form,
        )

    def _check_bytes(self, content_type: str) -> None:
        """Raise UpstreamError for a reply that is not audio, such as an error with status 200."""
        if content_type.startswith(("image/", "text/")) or content_type.endswith(("json", "xml")):
            raise UpstreamError(
                ErrorCode.PROVIDER_UNAVAILABLE,
                f"The provider {self._row.slug} answered with something other than audio.",
            )


def _decoder(reply: Reply, request: WireRequest) -> FrameDecoder:
    if request.reply_bytes_max is not None or reply.content_type == JSON:
        return WholeBody(request.reply_bytes_max)
    return SseDecoder(request.event_bytes_max)


class RawFrames:
    """Returns each chunk of raw bytes as a frame."""

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        return (Frame(data=chunk),)

    def end(self) -> Iterable[Frame]:
        return ()


def make_http_sse(row: ProviderRow, services: ProviderServices) -> Transport:
    """Return the transport of a row with the row's authorization."""
    if row.auth == "google":
        return HttpSse(row, services.pool, _GOOGLE_TOKEN()(row, services))
    if row.auth in SIGNED_SERVICES:
        return HttpSse(row, services.pool, AwsSignature(row, services))
    return HttpSse(row, services.pool, KeyHeader(row, services.secrets))
