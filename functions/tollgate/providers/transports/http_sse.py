"""Server-sent events over HTTP with a key in a header."""

from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager

import pydantic_core

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.base import Frame, ProviderRow, Timeouts, WireRequest
from tollgate.providers.transports.body_frames import BodyFrames, FrameDecoder, WholeBody
from tollgate.providers.transports.http_pool import HttpCall, HttpPool
from tollgate.stores.base import SecretStore
from tollgate.wire.sse import SseDecoder


class HttpSse:
    """Carries the requests of one row to `base_url`.

    The key is read with every call, so that a rotated secret is used at once.
    """

    def __init__(self, row: ProviderRow, pool: HttpPool, secrets: SecretStore) -> None:
        self._row = row
        self._pool = pool
        self._secrets = secrets

    @asynccontextmanager
    async def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AsyncIterator[AsyncIterator[Frame]]:
        call = HttpCall(
            provider=self._row.slug,
            url=f"{self._row.base_url}{request.path}",
            headers={
                **request.headers,
                **await self._authorization(),
                "content-type": "application/json",
                "accept": "text/event-stream",
            },
            body=pydantic_core.to_json(request.body),
            connect_s=timeouts.connect_s,
        )
        async with self._pool.post(call) as response:
            encoding = response.headers.get("content-encoding", "identity")
            if encoding.lower() != "identity":
                raise self._error(
                    ErrorCode.PROVIDER_UNAVAILABLE, "answered in an encoding we did not ask for"
                )
            yield BodyFrames(response, _decoder(response.content_type), self._row.slug)

    async def _authorization(self) -> Mapping[str, str]:
        reference = self._row.key
        if reference is None:
            return {}
        key = ((await self._secrets.read(reference)) or "").strip()
        if not key:
            raise self._error(ErrorCode.PROVIDER_AUTH, f"has no key: set {reference.described()}")
        if not (key.isascii() and key.isprintable()):
            raise self._error(
                ErrorCode.PROVIDER_AUTH, f"has an unusable key: check {reference.described()}"
            )
        if self._row.dialect.key_header == "api-key":
            return {"api-key": key}
        return {"authorization": f"Bearer {key}"}

    def _error(self, code: ErrorCode, what: str) -> UpstreamError:
        return UpstreamError(code, f"The provider {self._row.slug} {what}.")


def _decoder(content_type: str) -> FrameDecoder:
    return WholeBody() if content_type == "application/json" else SseFrames()


class SseFrames:
    """SSE events as frames."""

    def __init__(self) -> None:
        self._decoder = SseDecoder()

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        return [Frame(data=data, event=event) for event, data in self._decoder.feed(chunk)]

    def end(self) -> Iterable[Frame]:
        return [Frame(data=data, event=event) for event, data in self._decoder.end()]
