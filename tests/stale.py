"""A relay whose open connections can die unnoticed, as they do while Lambda is frozen."""

import asyncio
import socket
import struct
from types import TracebackType
from typing import Final, Self

_RESET_AT_CLOSE: Final = struct.pack("ii", 1, 0)


class StaleRelay:
    """Forwards TCP to `target`, a `host:port`.

    After `freeze`, a connection that was open looks alive until something is sent on it: then it
    is reset, nothing is forwarded, and what was sent is kept in `lost`.
    """

    def __init__(self, target: str) -> None:
        self._host, _, port = target.rpartition(":")
        self._port = int(port)
        self.lost: list[bytes] = []
        self.url = ""
        self._stale: set[asyncio.Task[None]] = set()
        self._open: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        tasks = set(self._open)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def freeze(self) -> None:
        """Let every connection that is open die."""
        self._stale |= self._open

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        onward_reader, onward = await asyncio.open_connection(self._host, self._port)
        back = asyncio.create_task(_pump(onward_reader, writer))
        try:
            while octets := await reader.read(65536):
                if task in self._stale:
                    self.lost.append(octets)
                    connection: socket.socket = writer.get_extra_info("socket")
                    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET_AT_CLOSE)
                    break
                onward.write(octets)
        except ConnectionError:
            pass
        finally:
            back.cancel()
            onward.close()
            writer.close()
            self._open.discard(task)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while octets := await reader.read(65536):
        writer.write(octets)
    writer.close()
