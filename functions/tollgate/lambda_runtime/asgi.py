"""API Gateway REST events as ASGI requests, ASGI responses in the form that API Gateway streams.

Prelude and delimiter: API Gateway developer guide, "Set up a Lambda proxy integration with payload
response streaming" (seen 2026-11-21).
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping, MutableMapping
from typing import Any, Final

from mangum.handlers.api_gateway import APIGateway
from mangum.types import LambdaConfig
from pydantic_core import from_json, to_json

from tollgate.core.clock import DEADLINE_EXTENSION
from tollgate.core.platform_ids import PLATFORM_IDS_EXTENSION
from tollgate.lambda_runtime.runtime_api import FunctionError, Invocation, ResponseStream

Scope = MutableMapping[str, Any]
AsgiMessage = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[AsgiMessage]]
Send = Callable[[AsgiMessage], Awaitable[None]]
ASGIApp = Callable[[Scope, Receive, Send], Awaitable[None]]

PRELUDE_BYTES_MAX: Final = 16 * 1024
_DELIMITER: Final = bytes(8)
# Headers of one connection or one message's framing, which API Gateway sets (RFC 9110, 7.6.1).
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
# The gateway's own path is taken as it is: the application answers under /v1 and /api/v1.
_MANGUM_CONFIG: Final[LambdaConfig] = {
    "api_gateway_base_path": "/",
    "text_mime_types": [],
    "exclude_headers": [],
}


async def run(app: ASGIApp, scope: Scope, receive: Receive, send: Send) -> None:
    """Call the application, as a coroutine whatever kind of awaitable it returns."""
    await app(scope, receive, send)


class EventError(Exception):
    """The event is not one that this function can answer."""


class PreludeTooLong(Exception):
    """Status and headers exceed the bytes that API Gateway reads for them."""


def read_http_request(invocation: Invocation) -> tuple[Scope, bytes] | None:
    """Return the scope and the body of an invocation; None if its event is no HTTP request.

    mangum parses the event here as it does for the buffered function, so that both functions get
    the same request. Raises EventError for an event that cannot be parsed.
    """
    try:
        event = from_json(invocation.event_bytes)
    except ValueError as error:
        raise EventError("the event is not JSON") from error
    if not isinstance(event, dict) or "httpMethod" not in event:
        return None
    try:
        # mangum only hands the context on, in an entry of the scope that is taken out below.
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
    """Encode the bytes before the body: status and headers as JSON, then the delimiter."""
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
    if len(opening) > PRELUDE_BYTES_MAX:
        raise PreludeTooLong(f"status and headers take {len(opening)} of {PRELUDE_BYTES_MAX} bytes")
    return opening


class Exchange:
    """The `receive` and `send` of one request; the status is sent as soon as it is known."""

    def __init__(self, body: bytes, stream: ResponseStream, *, bodyless: bool = False) -> None:
        # Of the response.
        self.started = False
        self.complete = False
        self._body: bytes | None = body
        self._stream = stream
        self._bodyless = bodyless
        self._delivered = asyncio.Event()

    async def receive(self) -> AsgiMessage:
        """Return the request in one message; then, once it is answered, the disconnect.

        An earlier disconnect cannot be known: Lambda does not report that a client left (C36).
        """
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._delivered.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: AsgiMessage) -> None:
        """Pass a message of the response on; RuntimeError if it comes out of order."""
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
        """Answer in the application's place; only before the response has started."""
        raw = [(name.encode(), value.encode()) for name, value in headers.items()]
        await self.send({"type": "http.response.start", "status": status, "headers": raw})
        await self.send({"type": "http.response.body", "body": body})

    async def fail(self, error: FunctionError) -> None:
        """End a started response that the application left incomplete."""
        self.complete = True
        await self._stream.fail(error)
