"""Sinks that turn a generation's events into a reply, streamed or not."""

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from datetime import UTC, datetime
from decimal import Decimal
from functools import partial
from math import inf
from typing import Final, Protocol

from tollgate.core.clock import Clock
from tollgate.core.errors import GatewayError
from tollgate.core.events import ChosenGroup, Ended, ungroup
from tollgate.core.limits import LimitWarning
from tollgate.core.money.amounts import credits_text
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import Fold
from tollgate.core.routing.endpoint_status import Lifecycle
from tollgate.engine.gateway import StreamTiming
from tollgate.engine.side_thread import LARGE_BYTES, SideThread
from tollgate.ingress.base import NO_HEADERS, Ingress, ParsedWork, Renderer, Routed, ServedBy
from tollgate.stores.ports.base import Hold

Headers = Mapping[str, str]

# The date format of RFC 9110, 5.6.7. The names are in English because the process sets no locale.
_HTTP_DATE: Final = "%a, %d %b %Y %H:%M:%S GMT"
_LARGE_STREAM_BYTES: Final = 1024 * 1024  # The last events, which repeat the answer, are larger.


class ClientGone(Exception):
    """Raised when the client has disconnected."""


class ReplyWriter(Protocol):
    """Writes an HTTP response; each method raises ClientGone if the client has disconnected."""

    async def start(self, status: int, headers: Headers) -> None:
        """Send the status and the headers."""

    async def write(self, body: bytes) -> None:
        """Send a piece of the body."""

    async def end(self, body: bytes) -> None:
        """Send the last piece of the body."""

    async def abort(self) -> None:
        """Abort an incomplete body, so that the client cannot mistake it for a complete one."""


class EventSink(Protocol):
    """Receives the events of one generation; the last call is either `finish` or `fail`."""

    def open(self, hold: Hold) -> AbstractAsyncContextManager[None]:
        """Return a context manager that spans the time from the hold to the settlement."""

    async def begin(self, served: ServedBy) -> None:
        """Accept the details of the attempt that serves."""

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        """Accept the next events, all from one read."""

    async def finish(self, record: GenerationRecord) -> None:
        """End the reply of a successful, settled generation."""

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        """End the reply of a failed, settled generation."""


class SseSink:
    """A sink that streams events as they arrive; the status is sent with the first write.

    Events from the same read become one write. A reply with its own media type, such as audio,
    contains nothing but content: it has no keep-alives, and is aborted if the generation fails.
    """

    def __init__(
        self,
        reply: ReplyWriter,
        ingress: Ingress,
        parsed: ParsedWork,
        *,
        clock: Clock,
        side: SideThread,
        timing: StreamTiming,
        credits_per_usd: Decimal,
        headers: Headers = NO_HEADERS,
    ) -> None:
        self._reply = reply
        self._ingress = ingress
        self._parsed = parsed
        self._side = side
        self._workspace_id = ""  # Replayed answers have no hold, and share one turn.
        self._written_bytes = 0
        self._clock = clock
        self._timing = timing
        self._credits_per_usd = credits_per_usd
        self._renderer: Renderer | None = None
        self._headers = dict(headers)
        self._status_sent = False
        self._is_writing = False
        # Cleared while `_guard_silence` is writing.
        self._guard_has_written = asyncio.Event()
        self._guard_has_written.set()
        self._last_write_s = clock.monotonic_s()

    @asynccontextmanager
    async def open(self, hold: Hold) -> AsyncIterator[None]:
        self._headers = admitted_headers(self._ingress, hold)
        self._workspace_id = hold.workspace_id
        if self._parsed.media_type:
            yield
            return
        guard = asyncio.create_task(self._guard_silence())
        try:
            yield
        finally:
            await self._dismiss(guard)
        if not guard.cancelled():
            guard.result()

    async def begin(self, served: ServedBy) -> None:
        self._renderer = self._rendering_of(served)
        self._headers |= served_headers(served, self._parsed)

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        feed = self._rendering().feed

        def render() -> bytes:
            return b"".join([feed(event, choice) for choice, event in ungroup(events)])

        is_large = self._is_large and bool(events) and isinstance(events[-1][1], Ended)
        if frames := await self._side.run(self._workspace_id, render, is_large=is_large):
            await self._write(frames)

    async def finish(self, record: GenerationRecord) -> None:
        close = partial(self._rendering().close, record)
        last = await self._side.run(record.workspace_id, close, is_large=self._is_large)
        if not self._status_sent:
            await self._reply.start(200, {**STREAM_HEADERS, **self._headers})
        await self._reply.end(last)

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        if not self._status_sent:
            routed = Routed.of(record) if self._parsed.tells_routing else None
            headers = self._headers | adapted_header(record.adapted)
            await send_error(self._reply, self._ingress, error, headers, routed=routed)
            return
        if self._parsed.media_type:
            await self._reply.abort()
            return
        if self._renderer is None:
            unserved = ServedBy(
                generation_id=record.id,
                created_s=record.created_s,
                model=self._parsed.request.model,
                provider=None,
            )
            self._renderer = self._rendering_of(unserved)
        fail = partial(self._renderer.fail, error, record)
        last = await self._side.run(record.workspace_id, fail, is_large=self._is_large)
        await self._reply.end(last)

    def _rendering_of(self, served: ServedBy) -> Renderer:
        return self._ingress.renderer(self._parsed, served, credits_per_usd=self._credits_per_usd)

    @property
    def _is_large(self) -> bool:
        return self._written_bytes > _LARGE_STREAM_BYTES

    def _rendering(self) -> Renderer:
        if self._renderer is None:
            raise RuntimeError("events before begin()")
        return self._renderer

    async def _write(self, body: bytes) -> None:
        if not self._guard_has_written.is_set():
            await self._guard_has_written.wait()
        # A lock would add a tenth to the cost of sending an event.
        self._is_writing = True
        try:
            await self._write_next(body)
        finally:
            self._is_writing = False

    async def _write_next(self, body: bytes) -> None:
        self._last_write_s = self._clock.monotonic_s()
        if not self._status_sent:
            await self._reply.start(200, {**self._stream_headers(), **self._headers})
            self._status_sent = True
        self._written_bytes += len(body)
        await self._reply.write(body)

    def _stream_headers(self) -> Headers:
        media_type = self._parsed.media_type
        return {**STREAM_HEADERS, "content-type": media_type} if media_type else STREAM_HEADERS

    async def _guard_silence(self) -> None:
        """Send the status and keep-alives while the provider is silent, because proxies drop idle
        connections.
        """
        while True:
            left_s = self._last_write_s + self._silence_max_s() - self._clock.monotonic_s()
            if left_s <= 0:
                if not self._is_writing and (
                    self._status_sent or self._timing.early_commit_after_s > 0
                ):
                    begun = self._renderer is not None
                    self._guard_has_written.clear()
                    try:
                        await self._write_next(
                            self._ingress.keep_alive if begun else self._ingress.early_keep_alive
                        )
                    except ClientGone:
                        # The next write of the answer raises ClientGone as well.
                        return
                    finally:
                        self._guard_has_written.set()
                left_s = self._silence_max_s()
            # The limit is shorter once the status is sent, which may happen during this sleep.
            await self._clock.sleep(min(left_s, self._timing.keep_alive_s))

    def _silence_max_s(self) -> float:
        early_s = self._timing.early_commit_after_s
        return self._timing.keep_alive_s if self._status_sent or early_s <= 0 else early_s

    async def _dismiss(self, guard: asyncio.Task[None]) -> None:
        """Cancel the guard task once any write that it has started is finished."""
        try:
            await self._guard_has_written.wait()
        finally:
            # Only a running task is cancelled, so that the exception of a failed one is still
            # logged.
            if not guard.done():
                guard.cancel()
            await asyncio.wait({guard})


class CollectSink:
    """A sink that collects the events, and replies once the generation is settled."""

    def __init__(
        self,
        reply: ReplyWriter,
        ingress: Ingress,
        parsed: ParsedWork,
        *,
        side: SideThread,
        credits_per_usd: Decimal,
        headers: Headers = NO_HEADERS,
    ) -> None:
        self._reply = reply
        self._ingress = ingress
        self._parsed = parsed
        self._side = side
        self._credits_per_usd = credits_per_usd
        self._folds = [Fold() for _ in range(parsed.request.answers)]
        self._served: ServedBy | None = None
        self._headers = dict(headers)

    def open(self, hold: Hold) -> AbstractAsyncContextManager[None]:
        self._headers = admitted_headers(self._ingress, hold)
        return nullcontext()

    async def begin(self, served: ServedBy) -> None:
        self._served = served
        self._headers |= served_headers(served, self._parsed)

    async def send(self, events: Sequence[ChosenGroup]) -> None:
        for choice, event in events:
            self._folds[choice].accept(event)

    async def finish(self, record: GenerationRecord) -> None:
        if self._served is None:
            raise RuntimeError("finish() before begin()")
        renderer = self._ingress.renderer(
            self._parsed, self._served, credits_per_usd=self._credits_per_usd
        )

        def render() -> bytes:
            return renderer.whole([fold.response() for fold in self._folds], record)

        is_large = sum(fold.size for fold in self._folds) > LARGE_BYTES
        body = await self._side.run(record.workspace_id, render, is_large=is_large)
        headers = {
            "content-type": self._parsed.media_type or "application/json",
            "content-length": str(len(body)),
            "x-credits-used": credits_text(record.cost_nano_usd, self._credits_per_usd),
            **self._headers,
            **adapted_header(record.adapted),
        }
        await self._reply.start(200, headers)
        await self._reply.end(body)

    async def fail(self, error: GatewayError, record: GenerationRecord) -> None:
        routed = Routed.of(record) if self._parsed.tells_routing else None
        headers = self._headers | adapted_header(record.adapted)
        await send_error(self._reply, self._ingress, error, headers, routed=routed)


STREAM_HEADERS: Final = {
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache",
    "x-accel-buffering": "no",
}


async def send_error(
    reply: ReplyWriter,
    ingress: Ingress,
    error: GatewayError,
    headers: Headers,
    *,
    routed: Routed | None = None,
) -> None:
    """Send an error in the client's format; `headers` must include `x-request-id`."""
    envelope = ingress.error(error, headers["x-request-id"], routed)
    await reply.start(
        envelope.status,
        {
            "content-type": "application/json",
            "content-length": str(len(envelope.body)),
            **envelope.headers,
            **headers,
        },
    )
    await reply.end(envelope.body)


def request_headers(request_id: str) -> dict[str, str]:
    """Return the headers that identify a metered request."""
    return {"x-request-id": request_id, "x-generation-id": f"gen-{request_id}"}


def admitted_headers(ingress: Ingress, hold: Hold) -> dict[str, str]:
    """Return the headers that are known once money is held."""
    return {
        **request_headers(hold.id),
        **ingress.limit_headers(hold.rate_limit, hold.token_limit, request_id=hold.id),
        **_warning_header(hold.warning),
    }


def _warning_header(warning: LimitWarning | None) -> dict[str, str]:
    if warning is None:
        return {}
    return {"x-tollgate-limit-warning": warning.text}


def refused_headers(
    ingress: Ingress, refusal: GatewayError, request_id: str, parsed: ParsedWork | None = None
) -> dict[str, str]:
    """Return the headers of a request that is refused before the hold.

    The refusal may have its own request id, which takes precedence over `request_id`. `parsed` is
    None if the request could not be parsed.
    """
    return {
        **request_headers(refusal.request_id or request_id),
        **ingress.limit_headers(refusal.rate_limit, refusal.token_limit, request_id=request_id),
        **adapted_header(parsed.unsent if parsed else ()),
    }


def adapted_header(names: Collection[str]) -> dict[str, str]:
    """Return the header that lists options without effect; empty if there are none."""
    return {"x-tollgate-adapted": ", ".join(names)} if names else {}


def served_headers(served: ServedBy, parsed: ParsedWork) -> dict[str, str]:
    """Return the headers that are known once an attempt has committed."""
    headers = {"x-model-used": served.model}
    if served.provider is not None:
        headers["x-provider-used"] = served.provider
    if served.fallback_from is not None:
        headers["x-fallback-from"] = served.fallback_from
        headers["x-fallback-depth"] = str(served.fallback_depth)
    if served.bend is not None:
        headers["x-tollgate-bend"] = served.bend
    if served.cache is not None:
        headers["x-tollgate-cache"] = served.cache
    if served.ending is not None:
        headers |= _ending_headers(served.ending)
    return headers | adapted_header((*parsed.ignored, *served.adapted))


def _ending_headers(ending: Lifecycle) -> dict[str, str]:
    """Return the headers that announce the retirement of a model: RFC 9745, RFC 8594
    and RFC 5829.
    """
    headers = {}
    if ending.deprecated_s != inf:
        headers["deprecation"] = f"@{int(ending.deprecated_s)}"
    if ending.retires_s != inf:
        headers["sunset"] = datetime.fromtimestamp(ending.retires_s, UTC).strftime(_HTTP_DATE)
    if ending.successor is not None:
        headers["link"] = f'</v1/models/{ending.successor}>; rel="successor-version"'
    return headers
