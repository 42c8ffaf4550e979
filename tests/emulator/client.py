"""The client's side of one exchange: heads, chunks, and the gateway's own errors."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.emulator.gateway_responses import render
from tests.emulator.http1 import HeaderList, header, response_head
from tests.emulator.integration import Prelude


@dataclass(frozen=True)
class ClientError:
    """A response of the gateway itself; `response_type` is that of "Gateway response types"."""

    status: int
    message: str
    error_type: str
    response_type: str = ""


@dataclass
class Client:
    """One response on a client's connection; once the client is gone, writing does nothing.

    `headers` are the gateway's own, sent with every response; `status` is None before any.
    """

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    headers: HeaderList = field(default_factory=list)
    # The API's gateway responses by type, as its definition has them.
    gateway_responses: Mapping[str, Any] = field(default_factory=dict)
    is_head: bool = False
    status: int | None = None
    gone: bool = False
    _chunked: bool = False

    @property
    def address(self) -> str:
        return str(self.writer.get_extra_info("peername")[0])

    async def refuse(self, error: ClientError) -> None:
        """The gateway's JSON error, or a cut where a response has begun."""
        if self.status is not None:
            self.cut()
            return
        request_id = header(self.headers, "x-amzn-RequestId") or ""
        worded = render(self.gateway_responses, error.response_type, error.status, request_id)
        if worded is not None:
            status, headers, body = worded
            await self.whole(Prelude(status, tuple(headers)), body)
            return
        body = json.dumps({"message": error.message}).encode()
        ours = (("x-amzn-ErrorType", error.error_type), ("Content-Type", "application/json"))
        await self.whole(Prelude(error.status, ours), body)

    async def whole(self, head: Prelude, body: bytes) -> None:
        """A complete response; the Content-Length is the gateway's own."""
        headers = [item for item in head.headers if item[0].lower() != "content-length"]
        if not head.bodiless:
            headers.append(("Content-Length", str(len(body))))
        self.status = head.status
        sent = b"" if self.is_head or head.bodiless else body
        await self._write(response_head(head.status, self.headers + headers) + sent)

    async def begin(self, prelude: Prelude) -> None:
        """The head of a stream.

        "Set up a Lambda proxy integration with payload response streaming": chunked is added
        where the function supplied neither content-length nor transfer-encoding.
        """
        headers = [*self.headers, *prelude.headers]
        self._chunked = not prelude.bodiless and prelude.content_length is None
        if self._chunked:
            headers.append(("Transfer-Encoding", "chunked"))
        self.status = prelude.status
        await self._write(response_head(prelude.status, headers))

    async def send(self, data: bytes) -> None:
        """Body bytes in one write: a piece that comes in is a chunk that goes out."""
        if data and not self.is_head:
            await self._write(b"%x\r\n%b\r\n" % (len(data), data) if self._chunked else data)

    async def end(self) -> None:
        if self._chunked and not self.is_head:
            await self._write(b"0\r\n\r\n")

    def cut(self) -> None:
        """Close without the last chunk: the client sees a transfer with data outstanding.

        "Troubleshoot issues with response streaming in API Gateway": the sign of a timeout.
        """
        self.gone = True
        self.writer.close()

    async def _write(self, data: bytes) -> None:
        self.gone = self.gone or self.reader.at_eof() or self.writer.is_closing()
        if self.gone:
            return
        try:
            self.writer.write(data)
            await self.writer.drain()
        except ConnectionError:
            self.gone = True
