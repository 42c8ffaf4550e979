"""The public side of a REST API stage: HTTP/1.1 in, proxy events to functions, their responses out.

"Stream the integration response for your proxy integrations" and "Lambda proxy integrations in API
Gateway"; default statuses are those of "Gateway response types". Bodies of the gateway's own errors
and x-amzn-ErrorType are as seen on deployed APIs, which no page lists.
"""

from __future__ import annotations

import asyncio
import uuid
import zlib
from collections.abc import Mapping
from typing import Any

from tests.emulator.client import Client, ClientError
from tests.emulator.event import Incoming, encode, is_binary_type, proxy_event
from tests.emulator.function import Function
from tests.emulator.http1 import (
    HeaderList,
    MalformedHttp,
    Request,
    read_request,
    response_head,
)
from tests.emulator.listener import Listener
from tests.emulator.relay import StreamRelay, relay_buffered
from tests.emulator.routes import Match, Route, select

# "Quotas for configuring and running a REST API": payload 10 MB; request line and headers 10,240 B.
PAYLOAD_BYTES_MAX = 10 * 1024 * 1024
HEADER_BYTES_MAX = 10_240
# "Lambda quotas": 6 MB for a synchronous event, whatever part of it is the body.
EVENT_BYTES_MAX = 6 * 1024 * 1024

MISSING_TOKEN = ClientError(
    403,
    "Missing Authentication Token",
    "MissingAuthenticationTokenException",
    "MISSING_AUTHENTICATION_TOKEN",
)
NO_SUCH_STAGE = ClientError(403, "Forbidden", "ForbiddenException")
PAYLOAD_TOO_LARGE = ClientError(
    413,
    f"HTTP content length exceeded {PAYLOAD_BYTES_MAX} bytes.",
    "RequestEntityTooLargeException",
    "REQUEST_TOO_LARGE",
)
EVENT_TOO_LARGE = ClientError(
    413, "Request Too Long", "RequestEntityTooLargeException", "REQUEST_TOO_LARGE"
)
# "Call an API method with a compressed payload": API Gateway decodes what its content codings are,
# and refuses others. No page says that it removes the header, so functions must bear the header.
UNSUPPORTED_MEDIA_TYPE = ClientError(
    415, "Unsupported Media Type", "UnsupportedMediaTypeException", "UNSUPPORTED_MEDIA_TYPE"
)
CONTENT_CODINGS = {"gzip": zlib.MAX_WBITS | 16, "deflate": zlib.MAX_WBITS}
# "Error handling for API Gateway": Lambda's 429 for a function without a free environment is no
# answer of the integration, and the gateway's own 500.
THROTTLED = ClientError(
    500, "Internal server error", "InternalServerErrorException", "INTEGRATION_FAILURE"
)
# No page names the status of over-long headers.
HEADERS_TOO_LARGE = ClientError(431, "Request header fields too large", "BadRequestException")
BAD_REQUEST = ClientError(400, "Bad Request", "BadRequestException")


class Front:
    """Listens on 127.0.0.1 and serves the methods that functions were given."""

    def __init__(
        self,
        stage: str,
        binary_media_types: tuple[str, ...],
        failures: list[Exception],
        gateway_responses: Mapping[str, Any],
    ) -> None:
        self.stage = stage
        self.gateway_responses = gateway_responses
        self.binary_media_types = binary_media_types
        self.routes: dict[Route, Function] = {}
        self._listener = Listener(self._serve, failures)

    async def start(self) -> str:
        """Returns the URL of the stage."""
        return f"http://{await self._listener.start()}/{self.stage}"

    async def close(self) -> None:
        """Cut every connection that is still open."""
        await self._listener.close()

    def add(self, routes: list[str], function: Function) -> None:
        """Raises ValueError for a method that another function serves."""
        for route in map(Route.parse, routes):
            if route in self.routes:
                raise ValueError(f"{route} is served by {self.routes[route].name}")
            self.routes[route] = function

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        keep = True
        while keep:
            client = Client(reader, writer, _gateway_headers(), self.gateway_responses)
            try:
                request = await read_request(reader)
                if request is None:
                    return
                client.is_head = request.method == "HEAD"
                await self._answer(request, client)
            except MalformedHttp:
                await client.refuse(BAD_REQUEST)
                return
            keep = (request.header("connection") or "").lower() != "close" and not client.gone

    async def _answer(self, request: Request, client: Client) -> None:
        if (request.header("expect") or "").lower() == "100-continue":
            client.writer.write(response_head(100, []))
        body = await _buffered_body(request)
        if body is None:
            await client.refuse(PAYLOAD_TOO_LARGE)
            return
        coding = request.header("content-encoding") or "identity"
        if coding != "identity":
            try:
                body = zlib.decompress(body, CONTENT_CODINGS[coding])
            except (KeyError, zlib.error):
                await client.refuse(UNSUPPORTED_MEDIA_TYPE)
                return
        raw_path, _, query = request.target.partition("?")
        found = self._find(request, raw_path)
        if isinstance(found, ClientError):
            await client.refuse(found)
            return
        function, matched, path = found
        incoming = Incoming(request.method, path, query, request.headers, body, client.address)
        event = proxy_event(
            incoming, matched, stage=self.stage, binary_media_types=self.binary_media_types
        )
        client.headers = _gateway_headers(event["requestContext"]["requestId"])
        if len(encode(event)) > EVENT_BYTES_MAX:
            await client.refuse(EVENT_TOO_LARGE)
            return
        if function.throttled:
            await client.refuse(THROTTLED)
            return
        invocation = function.invoke(event)
        if function.mode == "STREAM":
            await StreamRelay(function, invocation, client).run()
        else:
            decode = is_binary_type(request.header("accept"), self.binary_media_types)
            await relay_buffered(function, invocation, client, decode_base64=decode)

    def _find(self, request: Request, raw_path: str) -> tuple[Function, Match, str] | ClientError:
        if request.head_bytes > HEADER_BYTES_MAX:
            return HEADERS_TOO_LARGE
        prefix = f"/{self.stage}"
        if raw_path != prefix and not raw_path.startswith(prefix + "/"):
            return NO_SUCH_STAGE
        path = raw_path.removeprefix(prefix) or "/"
        matched = select({route.resource for route in self.routes}, path)
        if matched is None:
            return MISSING_TOKEN
        function = self.routes.get(Route(request.method, matched.resource))
        function = function or self.routes.get(Route("ANY", matched.resource))
        return MISSING_TOKEN if function is None else (function, matched, path)


async def _buffered_body(request: Request) -> bytes | None:
    """The whole body before anything is invoked; None where it is too large.

    "Stream the integration response": request streaming isn't supported. What is too large is still
    read, so that the client gets to see the refusal.
    """
    pieces: list[bytes] = []
    size = 0
    async for piece in request.body():
        size += len(piece)
        if size <= PAYLOAD_BYTES_MAX:
            pieces.append(piece)
    return b"".join(pieces) if size <= PAYLOAD_BYTES_MAX else None


def _gateway_headers(request_id: str | None = None) -> HeaderList:
    return [
        ("x-amzn-RequestId", request_id or str(uuid.uuid4())),
        ("x-amz-apigw-id", uuid.uuid4().hex[:15] + "="),
    ]
