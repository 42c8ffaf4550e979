"""Runs an ASGI application for API Gateway REST events, and streams its responses.

Prelude and delimiter: API Gateway developer guide, "Set up a Lambda proxy integration with payload
response streaming" (seen 2026-11-21).
"""

import asyncio
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Final

from mangum.handlers.api_gateway import APIGateway
from mangum.types import LambdaConfig
from pydantic_core import from_json, to_json
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tollgate.core.clock import DEADLINE_EXTENSION
from tollgate.core.tracing import PLATFORM_IDS_EXTENSION
from tollgate.lambda_runtime.runtime_api import FunctionError, Invocation, ResponseStream

PRELUDE_BYTES_MAX: Final = 16 * 1024
_DELIMITER: Final = bytes(8)
# API Gateway sets the headers of its own connection and framing (RFC 9110, 7.6.1).
_NOT_FORWARDED: Final = frozenset(
    {
        b"connection",
        b"content-length",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"transfer-encoding",
        b"upgrade",
    }
)
# No base path is stripped, because the application's routes begin with /v1 and /api/v1.
_MANGUM_CONFIG: Final[LambdaConfig] = {
    "api_gateway_base_path": "/",
    "text_mime_types": [],
    "exclude_headers": [],
}


async def run(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Run an application as a coroutine, because a task can only be created from a coroutine."""
    await app(scope, receive, send)


class EventError(Exception):
    """Raised if the event of an invocation is not JSON, or is a REST request that cannot be
    parsed.
    """


class PreludeTooLong(Exception):
    """Raised if the status and the headers exceed API Gateway's size limit."""


def read_http_request(invocation: Invocation) -> tuple[Scope, bytes] | None:
    """Return the scope and the body of an invocation; None if its event is not an HTTP request.

    mangum parses the event, as in the buffered function, so both functions get the same request.
    Raises EventError for an event that cannot be parsed.
    """
    try:
        event = from_json(invocation.event_bytes)
    except ValueError as error:
        raise EventError("the event is not JSON") from error
    if not isinstance(event, dict) or "httpMethod" not in event:
        return None
    try:
        # mangum uses the context (None) only for an entry of the scope, which is deleted below.
        gateway = APIGateway(event, None, _MANGUM_CONFIG)  # type: ignore[arg-type]
        scope, body = gateway.scope, gateway.body
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise EventError(f"the event is not a REST request: {type(error).__name__}") from error
    del scope["aws.event"], scope["aws.context"]
    scope["extensions"] = {
        DEADLINE_EXTENSION: {"epoch_ms": invocation.deadline_ms},
        PLATFORM_IDS_EXTENSION: {
            "api_gateway_request_id": _gateway_request_id(event),
            "lambda_request_id": invocation.request_id,
        },
    }
    return scope, body


def _gateway_request_id(event: Mapping[str, Any]) -> str | None:
    match event.get("requestContext"):
        case {"requestId": str(request_id)}:
            return request_id
        case _:
            return None


def encode_prelude(status: int, headers: Iterable[tuple[bytes, bytes]]) -> bytes:
    """Return the bytes that precede the body: status and headers as JSON, then the delimiter."""
    values: dict[str, list[str]] = {}
    for name, value in headers:
        lowered = name.lower()
        if lowered not in _NOT_FORWARDED:
            values.setdefault(lowered.decode("latin-1"), []).append(value.decode("latin-1"))
    cookies = values.pop("set-cookie", [])
    described = {
        "statusCode": status,
        "headers": {name: several[0] for name, several in values.items() if len(several) == 1},
        "multiValueHeaders": {name: several for name, several in values.items() if several[1:]},
        "cookies": cookies,
    }
    opening = to_json(described) + _DELIMITER
    size = len(opening)
    if size > PRELUDE_BYTES_MAX:
        raise PreludeTooLong(f"{size} bytes of status and headers exceed {PRELUDE_BYTES_MAX}")
    return opening


class Exchange:
    """The ASGI `receive` and `send` for one request; `send` forwards the status immediately."""

    def __init__(self, body: bytes, stream: ResponseStream, *, bodyless: bool = False) -> None:
        self.started = False
        """True once the response's status was sent."""
        self.complete = False
        """True once the response's last bytes were sent."""
        self._body: bytes | None = body
        self._stream = stream
        self._bodyless = bodyless
        self._delivered = asyncio.Event()

    async def receive(self) -> Message:
        """Return the request; in later calls, return a disconnect after the complete response.

        Lambda does not report that a client has left (C36), so there is no earlier disconnect.
        """
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._delivered.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        """Forward a message of the response; raise RuntimeError if the message is out of order."""
        match message["type"]:
            case "http.response.start" if not self.started:
                opening = encode_prelude(message["status"], message.get("headers", ()))
                await self._stream.open()
                self.started = True
                await self._stream.write(opening)
            case "http.response.body" if self.started and not self.complete:
                octets = b"" if self._bodyless else message.get("body", b"")
                if message.get("more_body", False):
                    await self._stream.write(octets)
                else:
                    self.complete = True
                    await self._stream.end(octets)
                    self._delivered.set()
            case unexpected:
                raise RuntimeError(f"{unexpected!r} out of order in a response")

    async def reply(self, status: int, headers: Mapping[str, str], body: bytes = b"") -> None:
        """Send a complete response if the application has not started one."""
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})
        await self.send({"type": "http.response.body", "body": body})

    async def fail(self, error: FunctionError) -> None:
        """End a started response that the application left incomplete."""
        self.complete = True
        await self._stream.fail(error)


class LifespanFailed(Exception):
    """Raised if the application reported that it could not start or stop, or ended without a
    report.
    """


@asynccontextmanager
async def lifespan(app: ASGIApp) -> AsyncIterator[dict[str, Any]]:
    """Start the application, yield its state, and stop it when the context ends.

    The caller copies the state into the scope of each request. Raises LifespanFailed if the
    application refuses, fails, or does not implement the lifespan.
    """
    to_app: asyncio.Queue[Message] = asyncio.Queue()
    from_app: asyncio.Queue[Message] = asyncio.Queue()
    state: dict[str, Any] = {}
    scope = {
        "type": "lifespan",
        "asgi": {"version": "3.0", "spec_version": "2.0"},
        "state": state,
    }
    running = asyncio.create_task(run(app, scope, to_app.get, from_app.put))
    try:
        to_app.put_nowait({"type": "lifespan.startup"})
        await _wait_completed("startup", running, from_app)
        try:
            yield state
        finally:
            to_app.put_nowait({"type": "lifespan.shutdown"})
            await _wait_completed("shutdown", running, from_app)
    finally:
        running.cancel()


async def _wait_completed(
    phase: str, running: asyncio.Task[None], from_app: asyncio.Queue[Message]
) -> None:
    answer = asyncio.create_task(from_app.get())
    either: set[asyncio.Task[Any]] = {running, answer}
    await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    if answer.done() and answer.result()["type"] == f"lifespan.{phase}.complete":
        return
    reason = answer.result().get("message", "") if answer.done() else "ended without a report"
    answer.cancel()
    cause = running.exception() if running.done() and not running.cancelled() else None
    raise LifespanFailed(f"{phase} of the application failed: {reason}") from cause
