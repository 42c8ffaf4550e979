"""Lambda's own API: one function invokes another and waits for its reply.

"Invoke", AWS Lambda API reference (2026-11): 200 with X-Amz-Function-Error where the function
failed, 404 for an unknown one, 413 for an event above 6 MB.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Final

from tests.emulator.function import Function
from tests.emulator.http1 import read_request, response_head
from tests.emulator.invocation import Completed, Failed, Piece
from tests.emulator.listener import Listener

PAYLOAD_BYTES_MAX: Final = 6 * 1024 * 1024
_PATH: Final = re.compile(r"/2015-03-31/functions/([^/]+)/invocations")


class InvokeApi:
    """Listens on 127.0.0.1 and invokes functions by their names."""

    def __init__(self, functions: Mapping[str, Function], failures: list[Exception]) -> None:
        self._functions = functions
        self._listener = Listener(self._serve, failures)

    async def start(self) -> str:
        """Return the URL of the API."""
        return f"http://{await self._listener.start()}"

    async def close(self) -> None:
        """Cut every connection that is still open."""
        await self._listener.close()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (request := await read_request(reader)) is not None:
            body = b"".join([piece async for piece in request.body()])
            found = _PATH.fullmatch(request.target)
            function = self._functions.get(found[1]) if found else None
            if request.method != "POST" or function is None:
                status, headers, reply = 404, [], b"{}"
            elif len(body) > PAYLOAD_BYTES_MAX:
                status, headers, reply = 413, [], b"{}"
            elif function.throttled:
                status, headers, reply = 429, [], b"{}"
            else:
                status = 200
                headers, reply = await _invoke(function, body)
            sized = [*headers, ("content-length", str(len(reply)))]
            writer.write(response_head(status, sized) + reply)
            await writer.drain()


async def _invoke(function: Function, body: bytes) -> tuple[list[tuple[str, str]], bytes]:
    invocation = function.invoke(json.loads(body))
    reply = b""
    while not isinstance(output := await invocation.output.get(), Completed | Failed):
        reply += output.data if isinstance(output, Piece) else b""
    if isinstance(output, Failed):
        kind = "Sandbox.Timedout" if output.kind == "timeout" else "Runtime.ExitError"
        failure = {"errorType": kind, "errorMessage": output.message}
        return [("x-amz-function-error", "Unhandled")], json.dumps(failure).encode()
    if len(reply) > PAYLOAD_BYTES_MAX:
        failure = {"errorType": "Function.ResponseSizeTooLarge", "errorMessage": ""}
        return [("x-amz-function-error", "Unhandled")], json.dumps(failure).encode()
    return [], reply
