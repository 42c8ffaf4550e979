"""Reads each document in a new process on this machine.

Reusing a process would save about 100 ms. But a document that took over the process could then read
or change the next caller's document (decision 223).
"""

import asyncio
import pwd
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, cast

import msgspec

from tollgate.core.documents.reading import (
    DocumentFault,
    ReadBatch,
    ReadDocument,
    ReaderUnavailable,
    ReadFault,
    ReadingReply,
    ReadingRequest,
    ReadingShare,
    ReadingTask,
    UnreadableDocument,
)
from tollgate.reading.confinement import CONFINEMENT_ARGUMENT, Confinement
from tollgate.reading.places import Places

READ_SECONDS_MAX: Final = 30.0
# Maximum time that a request waits for a process.
_WAIT_SECONDS_MAX: Final = 30.0
_REPLY_BYTES_MAX: Final = 64 * 1024 * 1024
_CHUNK_BYTES: Final = 1024 * 1024
_COMMAND: Final = (sys.executable, "-I", "-m", "tollgate.reading.child")


class ChildReader:
    """A reader that starts a process for each document, up to four at a time."""

    def __init__(
        self,
        *,
        command: tuple[str, ...] = _COMMAND,
        seconds_max: float = READ_SECONDS_MAX,
        wait_seconds_max: float = _WAIT_SECONDS_MAX,
        user: pwd.struct_passwd | None = None,
    ) -> None:
        # Only root can start processes as another user.
        self._command = command
        self._user = user
        self._seconds_max = seconds_max
        self._wait_seconds_max = wait_seconds_max
        self._places = Places()

    async def confinement(self) -> Confinement:
        """Return the confinement of reader processes; raise ReaderUnavailable if none can start."""
        try:
            async with (
                asyncio.timeout(self._seconds_max),
                self._process(CONFINEMENT_ARGUMENT) as process,
            ):
                reply, _ = await process.communicate()
            return msgspec.msgpack.decode(reply, type=Confinement)
        except (TimeoutError, msgspec.MsgspecError) as broken:
            raise ReaderUnavailable("the process did not start") from broken

    async def read(
        self, content: bytes, media_type: str, task: ReadingTask, share: ReadingShare
    ) -> ReadDocument:
        """Return the pages of a document; raise UnreadableDocument or ReaderUnavailable."""
        request = ReadingRequest(
            media_type=media_type,
            task=task,
            content=content,
            bytes_max=_REPLY_BYTES_MAX,
            cpu_seconds_max=share.cpu_seconds_max,
        )
        async with self._turn(share.workspace_id):
            reply = await self._ask(msgspec.msgpack.encode(request))
        if isinstance(reply, ReadFault):
            raise reply.error
        if reply.next_page is not None:
            raise UnreadableDocument(DocumentFault.TOO_LARGE_PICTURES)
        return ReadDocument(
            pages=reply.pages,
            pages_total=reply.pages_total,
            title=reply.title,
            cpu_seconds=reply.cpu_seconds,
        )

    @asynccontextmanager
    async def _turn(self, workspace_id: str) -> AsyncIterator[None]:
        """Wait for permission to start a process; raise ReaderUnavailable after the timeout."""
        async with AsyncExitStack() as stack:
            taking = self._places.take(workspace_id, wait_seconds_max=self._wait_seconds_max)
            try:
                await stack.enter_async_context(taking)
            except TimeoutError as late:
                raise ReaderUnavailable("all processes are busy") from late
            yield

    async def _ask(self, request: bytes) -> ReadBatch | ReadFault:
        try:
            async with asyncio.timeout(self._seconds_max), self._process() as process:
                writing = asyncio.create_task(_write(process, request))
                try:
                    reply = await _read_limited(process)
                finally:
                    writing.cancel()
                status = await process.wait()
        except TimeoutError as late:
            raise UnreadableDocument(DocumentFault.TOO_SLOW) from late
        if status == -signal.SIGXCPU:
            raise UnreadableDocument(DocumentFault.TOO_SLOW)
        if status != 0:
            raise UnreadableDocument(DocumentFault.CRASHED)
        try:
            decoded: ReadingReply = msgspec.msgpack.decode(reply, type=ReadingReply)
        except msgspec.MsgspecError as broken:
            raise UnreadableDocument(DocumentFault.CRASHED) from broken
        return decoded

    @asynccontextmanager
    async def _process(self, *arguments: str) -> AsyncIterator[Process]:
        """Start a process with an empty environment, and kill the process on exit."""
        user = self._user
        try:
            process = await asyncio.create_subprocess_exec(
                *self._command,
                *arguments,
                stdin=PIPE,
                stdout=PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env={},
                user=None if user is None else user.pw_uid,
                group=None if user is None else user.pw_gid,
                extra_groups=None if user is None else (),
            )
        except OSError as failed:
            raise ReaderUnavailable("no process could be started") from failed
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()
            await process.wait()


async def _write(process: Process, request: bytes) -> None:
    stdin = cast(asyncio.StreamWriter, process.stdin)
    try:
        stdin.write(request)
        await stdin.drain()
        stdin.close()
    except (BrokenPipeError, ConnectionResetError):
        # The process has ended; the caller checks its exit status.
        return


async def _read_limited(process: Process) -> bytes:
    """Return the output of a process; raise UnreadableDocument if the output is too long."""
    stdout = cast(asyncio.StreamReader, process.stdout)
    reply = bytearray()
    while chunk := await stdout.read(_CHUNK_BYTES):
        reply += chunk
        if len(reply) > 2 * _REPLY_BYTES_MAX:
            raise UnreadableDocument(DocumentFault.CRASHED)
    return bytes(reply)
