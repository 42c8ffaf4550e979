"""The supervisor of `tollgate serve --processes`: signals, and processes that hang or fail.

Keeps C36.
"""

import asyncio
import os
import pty
import resource
import signal
import sys
from asyncio.subprocess import PIPE, STDOUT, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.functional.test_serve_processes import becomes, children

PATIENCE_S = 60


@dataclass
class Stream:
    """A connection whose answer has begun."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    pid: int

    async def ends(self) -> bool:
        """Return whether the rest of the answer comes, and its end after that."""
        self.writer.write(b"!")
        rest = await asyncio.wait_for(self.reader.read(), PATIENCE_S)
        return rest.endswith(b"%d\n\r\n0\r\n\r\n" % self.pid)


@dataclass
class Supervised:
    """A supervisor of two small servers."""

    process: Process
    port: int
    broken: Path
    output: list[str]
    opened: list[asyncio.StreamWriter] = field(default_factory=list)

    async def begin(self, path: str = "/") -> Stream:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.opened.append(writer)
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: 1\r\n\r\n"
        writer.write(head.encode())
        async with asyncio.timeout(PATIENCE_S):
            await reader.readuntil(b"\r\n\r\n")
            await reader.readline()
            return Stream(reader, writer, int(await reader.readline()))

    async def begin_with_each(self) -> dict[int, Stream]:
        """Return a stream of each of the two processes."""
        streams: dict[int, Stream] = {}
        async with asyncio.timeout(PATIENCE_S):
            while len(streams) < 2:
                stream = await self.begin()
                if streams.setdefault(stream.pid, stream) is not stream:
                    stream.writer.close()
        return streams

    async def serves_without(self, gone: set[int]) -> set[int]:
        """Wait until both processes are others, and return them."""
        async with asyncio.timeout(PATIENCE_S):
            while True:
                streams = [await self.begin() for _ in range(12)]
                for stream in streams:
                    stream.writer.close()
                pids = {stream.pid for stream in streams}
                if len(pids) == 2 and not pids & gone:
                    return pids

    async def writes(self, text: str) -> None:
        await becomes(lambda: any(text in line for line in self.output))

    async def ended(self) -> int:
        return await asyncio.wait_for(self.process.wait(), PATIENCE_S)


async def started(broken: Path) -> Process:
    program = (sys.executable, "-m", "tests.functional.supervised", str(broken))
    return await asyncio.create_subprocess_exec(
        *program, stdout=PIPE, stderr=STDOUT, start_new_session=True
    )


@asynccontextmanager
async def supervised(folder: Path) -> AsyncIterator[Supervised]:
    broken = folder / "broken"
    process = await started(broken)
    output: list[str] = []

    async def read() -> None:
        assert process.stdout is not None
        while line := await process.stdout.readline():
            output.append(line.decode())

    reading = asyncio.create_task(read())
    try:
        await becomes(lambda: any(line.startswith("port ") for line in output))
        port = int(next(line for line in output if line.startswith("port ")).split()[1])
        server = Supervised(process, port, broken, output)
        try:
            yield server
        finally:
            for writer in server.opened:
                writer.close()
    finally:
        # A process that hangs ends with nothing else.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
        reading.cancel()


async def refuses(server: Supervised) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", server.port)
            except ConnectionResetError:
                # It was in the queue of the listener when that was closed.
                continue
            except ConnectionRefusedError:
                return
            writer.close()


async def test_c36_sighup_replaces_all_and_what_they_answer_ends_whole(tmp_path: Path) -> None:
    async with supervised(tmp_path) as server:
        streams = await server.begin_with_each()
        server.process.send_signal(signal.SIGHUP)
        # Each old process still answers a stream, and delays neither the others ...
        successors = await server.serves_without(set(streams))
        # ... nor the next start,
        os.kill(min(successors), signal.SIGKILL)
        successors = await server.serves_without({*streams, min(successors)})
        # ... nor the end of all.
        newer = await server.begin()
        server.process.send_signal(signal.SIGTERM)
        await refuses(server)
        assert server.process.returncode is None
        for stream in (newer, *streams.values()):
            assert await stream.ends()
        assert await server.ended() == 0


async def test_a_process_whose_event_loop_is_blocked_is_replaced(tmp_path: Path) -> None:
    async with supervised(tmp_path) as server:
        hung = (await server.begin("/block")).pid
        # Its share of the new connections goes to the other one.
        other = await server.begin()
        assert other.pid != hung
        await server.serves_without({hung})
        assert await other.ends()
        [line] = [line for line in server.output if "a process is lost" in line]
        assert f'"pid":{hung}' in line
        assert "silent for 2 s" in line
        assert any("in block_the_loop" in line for line in server.output)


async def test_a_stopped_process_does_not_keep_the_others_from_their_end(
    tmp_path: Path,
) -> None:
    async with supervised(tmp_path) as server:
        other, hung = (await server.begin_with_each()).values()
        os.kill(hung.pid, signal.SIGSTOP)
        server.process.send_signal(signal.SIGTERM)
        await refuses(server)
        assert await other.ends()
        assert await server.ended() == 0


async def test_a_configuration_that_breaks_ends_no_process_that_serves(tmp_path: Path) -> None:
    async with supervised(tmp_path) as server:
        first, second = (await server.begin_with_each()).values()
        server.broken.touch()
        server.process.send_signal(signal.SIGHUP)
        await server.writes("the processes that serve are kept")
        os.kill(first.pid, signal.SIGKILL)
        await becomes(lambda: sum("does not start" in line for line in server.output) >= 3)
        assert await second.ends()
        assert (await server.begin()).pid == second.pid
        server.broken.unlink()
        last = await server.serves_without({first.pid})
        server.broken.touch()
        for pid in last:
            os.kill(pid, signal.SIGKILL)
        assert await server.ended() == 1
        await server.writes("nothing serves")


async def test_a_process_that_cannot_be_made_ends_none_that_serves(tmp_path: Path) -> None:
    async with supervised(tmp_path) as server:
        first, second = (await server.begin_with_each()).values()
        used = len(os.listdir(f"/proc/{server.process.pid}/fd"))
        limits = resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE)
        # What the lost process had is all that is free: two of the four that a new one needs.
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (used, limits[1]))
        os.kill(first.pid, signal.SIGKILL)
        await server.writes("no process can be made")
        assert (await server.begin()).pid == second.pid
        server.process.send_signal(signal.SIGHUP)
        await server.writes("the processes that serve are kept")
        resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, limits)
        await server.serves_without({first.pid})
        assert await second.ends()
        server.process.send_signal(signal.SIGTERM)
        assert await server.ended() == 0
        assert not any("exception" in line for line in server.output)


class Screen(asyncio.Protocol):
    """What is shown on a terminal."""

    def __init__(self) -> None:
        self.text = b""
        self.ended = asyncio.Event()

    def data_received(self, data: bytes) -> None:
        self.text += data

    def connection_lost(self, _: Exception | None) -> None:
        self.ended.set()


@pytest.mark.parametrize("by", ["Ctrl-C", "closing it"])
async def test_a_terminal_ends_all_that_was_started_on_it(tmp_path: Path, by: str) -> None:
    master, line = pty.openpty()
    # The first terminal that the leader of a session opens is its own.
    take = ("sh", "-c", 'exec <"$0" >"$0" 2>&1; exec "$@"', os.ttyname(line))
    program = (sys.executable, "-m", "tests.functional.supervised", str(tmp_path / "broken"))
    process = await asyncio.create_subprocess_exec(*take, *program, start_new_session=True)
    terminal, screen = await asyncio.get_running_loop().connect_read_pipe(
        Screen, os.fdopen(master, "rb", buffering=0)
    )
    try:
        if by == "Ctrl-C":
            # Its processes have not read their program yet.
            await becomes(lambda: len(children(process.pid)) == 2)
            os.close(line)
            os.write(master, b"\x03")
        else:
            await becomes(lambda: b"port " in screen.text)
            os.close(line)
            terminal.close()
        await asyncio.wait_for(process.wait(), PATIENCE_S)
        await asyncio.wait_for(screen.ended.wait(), PATIENCE_S)
        assert b"Traceback" not in screen.text
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        terminal.close()


async def test_a_configuration_that_was_never_right_ends_the_program(tmp_path: Path) -> None:
    (tmp_path / "broken").touch()
    process = await started(tmp_path / "broken")
    output, _ = await asyncio.wait_for(process.communicate(), PATIENCE_S)
    assert process.returncode == 1
    assert output.decode().count("the configuration is broken") == 2
    assert output.decode().endswith("nothing serves\n")
