"""CPU per call with `http1` and with aiohttp, in turn: `python -m bench.clients [ROUNDS]`.

The server is a separate process, so its CPU is not counted.
"""

import asyncio
import multiprocessing
import sys
import time
from collections.abc import Awaitable, Callable
from multiprocessing.connection import Connection
from statistics import median
from typing import Final

import aiohttp

from tollgate.http1.pool import Pool
from tollgate.http1.request import USUAL_HEADERS, Request

_CALLS: Final = 400
_BODY: Final = b"{}" * 500
_REPLY: Final = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 800\r\n\r\n"

Call = Callable[[], Awaitable[bytes]]


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    size = None
    while size != b"":
        try:
            await reader.readuntil(b"\r\n\r\n")
            size = await reader.readexactly(len(_BODY))
        except asyncio.IncompleteReadError:
            break
        writer.write(_REPLY + b"x" * 800)
    writer.close()


def _serve(port: Connection) -> None:
    async def run() -> None:
        server = await asyncio.start_server(_answer, "127.0.0.1", 0)
        port.send(server.sockets[0].getsockname()[1])
        await server.serve_forever()

    asyncio.run(run())


async def _cpu_us(call: Call, at_once: int) -> float:
    """Return the CPU of one call in microseconds."""

    async def several() -> None:
        for _ in range(_CALLS // at_once):
            assert len(await call()) == 800

    begun = time.process_time()
    await asyncio.gather(*(several() for _ in range(at_once)))
    return (time.process_time() - begun) / _CALLS * 1e6


async def _compare(url: str, rounds: int) -> None:
    pool, session = Pool(100), aiohttp.ClientSession()
    request = Request(method="POST", url=url, headers=USUAL_HEADERS, body=(_BODY,))

    async def by_http1() -> bytes:
        reply = await pool.send(request)
        try:
            return await reply.read_all(1_000)
        finally:
            reply.close()

    async def by_aiohttp() -> bytes:
        async with session.post(url, data=_BODY, headers=USUAL_HEADERS) as reply:
            return await reply.read()

    for at_once in (1, 8):
        taken: dict[str, list[float]] = {"http1": [], "aiohttp": []}
        for _ in range(rounds):
            taken["http1"].append(await _cpu_us(by_http1, at_once))
            taken["aiohttp"].append(await _cpu_us(by_aiohttp, at_once))
        figures = ", ".join(f"{name} {median(each):.0f} us" for name, each in taken.items())
        print(f"{at_once} at once: {figures} of CPU a call (median of {rounds} rounds)")
    await pool.close()
    await session.close()


def main() -> None:
    here, there = multiprocessing.Pipe()
    server = multiprocessing.Process(target=_serve, args=(there,), daemon=True)
    server.start()
    asyncio.run(_compare(f"http://127.0.0.1:{here.recv()}/", int([*sys.argv, "15"][1])))
    server.terminate()


if __name__ == "__main__":
    main()
