"""An in-memory DynamoDB on a socket: the engine of tests/capacity, without limits.

It answers some thousands of calls a second, while an emulator answers some hundreds. The extra
operation `Spent` returns the number of calls and write units since the start.

Usage: python -m bench.gateways.dynamodb
"""

import asyncio
from collections.abc import Mapping
from random import Random
from time import monotonic
from typing import Any
from urllib.request import Request, urlopen

from msgspec import Struct, json
from tests.capacity.engine import MemoryDynamo
from tests.capacity.partitions import Partitions
from typing_extensions import override

from bench.children import announce
from tollgate.aws.failures import ConditionFailed, TransactionCancelled

_TARGET = b"x-amz-target: dynamodb_20120810."
SPENT = "Spent"


class Spent(Struct, frozen=True):
    """The number of calls and write units of a store since its start."""

    calls: int
    write_units: int

    def since(self, before: "Spent") -> "Spent":
        """Return the calls and units since an earlier count."""
        return Spent(self.calls - before.calls, self.write_units - before.write_units)


class Connection(asyncio.Protocol):
    """One connection, which receives one request at a time."""

    def __init__(self, store: MemoryDynamo) -> None:
        self._store = store
        self._received = b""
        self._answering: asyncio.Task[None] | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    @override
    def data_received(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        if not blank:
            return
        lower = head.lower()
        _, _, length = lower.partition(b"content-length:")
        size = int(length.partition(b"\r\n")[0])
        if len(body) < size:
            return
        self._received = body[size:]
        at = lower.index(_TARGET) + len(_TARGET)
        operation = head[at:].partition(b"\r\n")[0].decode()
        self._answering = asyncio.create_task(self._answer(operation, body[:size]))

    async def _answer(self, operation: str, body: bytes) -> None:
        status, reply = await _call(self._store, operation, json.decode(body))
        content = json.encode(reply)
        head = (
            f"HTTP/1.1 {status}\r\ncontent-type: application/x-amz-json-1.0\r\n"
            f"content-length: {len(content)}\r\n\r\n"
        )
        self._transport.write(head.encode() + content)


async def _call(
    store: MemoryDynamo, operation: str, payload: Mapping[str, Any]
) -> tuple[str, object]:
    """Return status and reply as DynamoDB sends them."""
    if operation == SPENT:
        return "200 OK", Spent(store.calls.total(), store.units.total())
    refused = "400 Bad Request"
    try:
        return "200 OK", await store.call(operation, payload)
    except ConditionFailed as failed:
        found = {} if failed.item is None else {"Item": failed.item}
        return refused, {"__type": "x#ConditionalCheckFailedException", **found}
    except TransactionCancelled as cancelled:
        reasons = [{"Code": reason.code} for reason in cancelled.reasons]
        return refused, {
            "__type": "x#TransactionCanceledException",
            "CancellationReasons": reasons,
        }
    except AttributeError as unknown:
        return refused, {"__type": "x#UnknownOperationException", "message": str(unknown)}


def read_spent(url: str) -> Spent:
    """Return the calls and write units of the store at a URL since its start."""
    request = Request(url, b"{}", {"x-amz-target": f"DynamoDB_20120810.{SPENT}"})
    with urlopen(request, timeout=10) as reply:
        return json.decode(reply.read(), type=Spent)


async def main() -> None:
    """Serve until the process is ended."""
    store = MemoryDynamo(Partitions(monotonic), Random(7), latency_s=0)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Connection(store), "127.0.0.1", 0, backlog=1024)
    announce(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
