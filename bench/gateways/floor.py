"""The floor, which forwards bytes without parsing: python -m bench.gateways.floor UPSTREAM_PORT"""

import asyncio
import sys

from typing_extensions import override

from bench.children import announce


class Pipe(asyncio.Protocol):
    """One side of a forwarded connection; the client's side opens the other."""

    def __init__(self, upstream_port: int, peer: "Pipe | None" = None) -> None:
        self._upstream_port = upstream_port
        self._peer = peer
        self._early: list[bytes] = []
        self._connecting: asyncio.Task[object] | None = None

    @override
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        if self._peer is not None:
            self._peer.join(self)
            return
        loop = asyncio.get_running_loop()
        self._connecting = loop.create_task(
            loop.create_connection(
                lambda: Pipe(self._upstream_port, self), "127.0.0.1", self._upstream_port
            )
        )

    def join(self, peer: "Pipe") -> None:
        """Connect the other side, and send it the bytes that arrived before."""
        self._peer = peer
        peer.write(b"".join(self._early))

    def write(self, octets: bytes) -> None:
        """Send to this side."""
        self._transport.write(octets)

    def close(self) -> None:
        """Close this side."""
        self._transport.close()

    @override
    def data_received(self, data: bytes) -> None:
        if self._peer is None:
            self._early.append(data)
        else:
            self._peer.write(data)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        if self._peer is not None:
            self._peer.close()


async def main(upstream_port: int) -> None:
    """Forward until the process is ended."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: Pipe(upstream_port), "127.0.0.1", 0, backlog=256)
    announce(port=server.sockets[0].getsockname()[1])
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
