"""From an invocation's output to the client's connection, in STREAM and in BUFFERED mode."""

from __future__ import annotations

import asyncio
from typing import assert_never

from tests.emulator.client import Client, ClientError
from tests.emulator.function import Function
from tests.emulator.integration import (
    DELIMITER,
    PRELUDE_CONTENT_TYPE,
    Prelude,
    PreludeReader,
    Refused,
    parse_prelude,
    parse_proxy_response,
)
from tests.emulator.invocation import Completed, Failed, Invocation, Opened, Output, Piece
from tests.emulator.violations import Rule

# "Gateway response types": INTEGRATION_TIMEOUT is 504. A function that fails is a 502; so is one
# that reaches its own timeout first, as a deployed API did (rasp.hateblo.jp, 2021-05-13).
BAD_GATEWAY = ClientError(502, "Internal server error", "InternalServerErrorException")
TIMED_OUT = ClientError(
    504, "Endpoint request timed out", "InternalServerErrorException", "INTEGRATION_TIMEOUT"
)
# "Set up a Lambda proxy integration with payload response streaming": other output is an error.
BAD_STREAM = ClientError(500, "Internal server error", "InternalServerErrorException")


class Watch:
    """An invocation's output under the integration timeout and, for streams, the idle timeout."""

    def __init__(self, function: Function, invocation: Invocation) -> None:
        self._function = function
        self._output = invocation.output
        self._end_s = asyncio.get_running_loop().time() + function.integration_timeout_s

    async def next(self) -> Output:
        """Raises TimeoutError."""
        left_s = self._end_s - asyncio.get_running_loop().time()
        if self._function.mode == "STREAM":
            # "Stream the integration response": idle timeout 5 minutes for Regional endpoints.
            left_s = min(left_s, self._function.idle_timeout_s)
        async with asyncio.timeout(left_s):
            return await self._output.get()


class StreamRelay:
    """Forwards each piece as it comes, from the metadata on.

    A client that left does not stop it: "Stream the integration response" says that the function
    may continue to run after a disconnect.
    """

    def __init__(self, function: Function, invocation: Invocation, client: Client) -> None:
        self._watch = Watch(function, invocation)
        self._invocation = invocation
        self._client = client
        self._reader = PreludeReader()
        self._prelude: Prelude | None = None
        self._sent_bytes = 0

    async def run(self) -> None:
        """Before the metadata an error has its status, after it the stream is cut."""
        invocation, client = self._invocation, self._client
        try:
            while not await self._forward(await self._watch.next()):
                invocation.client_gone = client.gone
        except Refused as refused:
            invocation.report(refused.rule, refused.detail)
            await client.refuse(BAD_STREAM)
        except TimeoutError:
            await client.refuse(TIMED_OUT)
        invocation.status = client.status

    async def _forward(self, output: Output) -> bool:
        """Whether this was the last. Raises Refused."""
        match output:
            case Opened(streaming, content_type):
                if not streaming:
                    raise Refused(Rule.NOT_STREAMED, "a buffered response")
                if content_type != PRELUDE_CONTENT_TYPE:
                    raise Refused(Rule.CONTENT_TYPE, f"Content-Type: {content_type}")
            case Piece(data):
                await self._piece(data)
            case Completed():
                if self._prelude is None:
                    raise self._reader.end()
                self._check_length(self._prelude, ended=True)
                # Error trailers end the stream like any other: "Building a custom runtime" hands
                # them to Lambda, and a client of the gateway has nowhere to see them.
                await self._client.end()
                return True
            case Failed():
                await self._client.refuse(BAD_GATEWAY)
                return True
            case _:
                assert_never(output)
        return False

    async def _piece(self, data: bytes) -> None:
        if self._prelude is None:
            found = self._reader.feed(data)
            if found is None:
                return
            self._prelude, data = found
            self._invocation.prelude = self._prelude
            await self._client.begin(self._prelude)
            self._invocation.status = self._client.status
        self._sent_bytes += len(data)
        self._check_length(self._prelude, ended=False)
        await self._client.send(data)

    def _check_length(self, prelude: Prelude, *, ended: bool) -> None:
        if prelude.bodiless and self._sent_bytes:
            raise Refused(Rule.BODY_FORBIDDEN, f"{prelude.status} with {self._sent_bytes} bytes")
        expected = prelude.content_length
        if expected is None or self._client.is_head:
            return
        if self._sent_bytes > expected or (ended and self._sent_bytes < expected):
            raise Refused(Rule.CONTENT_LENGTH, f"{self._sent_bytes} of {expected} bytes")


async def relay_buffered(
    function: Function, invocation: Invocation, client: Client, *, decode_base64: bool
) -> None:
    """Wait for the whole response, then send it; only a proxy response gets through."""
    watch = Watch(function, invocation)
    payload = b""
    try:
        while not isinstance(output := await watch.next(), Completed | Failed):
            payload += output.data if isinstance(output, Piece) else b""
        if isinstance(output, Failed):
            await client.refuse(BAD_GATEWAY)
        elif DELIMITER in payload:
            # "Stream the integration response": the method must be STREAM, else the body is lost.
            invocation.report(Rule.PRELUDE_ON_BUFFERED, "a prelude and its delimiter")
            await client.whole(parse_prelude(payload.partition(DELIMITER)[0]), b"")
        else:
            response = parse_proxy_response(payload, decode_base64=decode_base64)
            await client.whole(response.head, response.body)
    except Refused as refused:
        invocation.report(refused.rule, refused.detail)
        await client.refuse(BAD_GATEWAY)
    except TimeoutError:
        await client.refuse(TIMED_OUT)
    invocation.status = client.status
    invocation.client_gone = client.gone
