"""AWS's own Lambda Runtime Interface Emulator (RIE), as the SAM CLI's wheel carries it.

It invokes, times out, kills and restarts a function by AWS's code, and refuses what Lambda
refuses. It keeps a streamed response until its end, so a tap before its Runtime API shows what
left the function, and when.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any, Final, Self

import aiohttp
import pytest

from tests.artefact.building import ROOT
from tests.emulator.event import Incoming, proxy_event
from tests.emulator.process import FunctionConfig
from tests.emulator.routes import Match

_MACHINES: Final = {"x86_64": "x86_64", "aarch64": "arm64"}
_INVOCATIONS: Final = "/2015-03-31/functions/function/invocations"
_DELIMITER: Final = bytes(8)
# Only a broken test waits this long.
_PATIENCE_S: Final = 60.0


def rie_binary() -> Path:
    """The emulator for this machine; the test is skipped where there is none that runs."""
    machine = _MACHINES.get(platform.machine())
    if sys.platform != "linux" or machine is None:
        pytest.skip(f"AWS builds its emulator for Linux only, not {sys.platform} {machine or ''}")
    found = list((ROOT / ".tools/sam").glob(f"lib/*/site-packages/samcli/local/rapid/*{machine}"))
    if not found:
        pytest.fail("the SAM CLI in .tools/sam has no emulator: `make test` makes it")
    return found[0]


def rest_event(body: bytes, secret: str, *, method: str = "POST") -> dict[str, Any]:
    """What API Gateway sends for a call of chat completions."""
    path = "/v1/chat/completions"
    headers = [("authorization", f"Bearer {secret}"), ("content-type", "application/json")]
    incoming = Incoming(method, path, "", headers, body, "203.0.113.7")
    return proxy_event(incoming, Match(path, {}, ()), stage="api", binary_media_types=())


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What Invoke answered; a function that answers in the streaming form has prelude and body."""

    status: int
    content: bytes

    @property
    def prelude(self) -> Any:
        return json.loads(self.content.partition(_DELIMITER)[0])

    @property
    def body(self) -> bytes:
        return self.content.partition(_DELIMITER)[2]

    @property
    def error(self) -> Any:
        """Lambda's own error document."""
        assert _DELIMITER not in self.content
        return json.loads(self.content)


@dataclass
class Tap:
    """Passes everything on between the function and the Runtime API, and keeps what was sent."""

    target: tuple[str, int]
    sent: bytearray = field(default_factory=bytearray)
    _grown: asyncio.Condition = field(default_factory=asyncio.Condition)

    async def saw(self, octets: bytes) -> None:
        """Wait until the function has sent these bytes."""
        async with asyncio.timeout(_PATIENCE_S), self._grown:
            await self._grown.wait_for(lambda: octets in self.sent)

    async def accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection of the function."""
        upstream, upward = await asyncio.open_connection(*self.target)
        try:
            await asyncio.gather(
                self._pump(reader, upward, keep=True), self._pump(upstream, writer)
            )
        except ConnectionError:
            pass
        finally:
            upward.close()
            writer.close()

    async def _pump(
        self, source: asyncio.StreamReader, sink: asyncio.StreamWriter, *, keep: bool = False
    ) -> None:
        while octets := await source.read(65_536):
            sink.write(octets)
            await sink.drain()
            if keep:
                async with self._grown:
                    self.sent += octets
                    self._grown.notify_all()
        if sink.can_write_eof():
            sink.write_eof()


@dataclass
class AwsEmulator:
    """A running emulator with one function."""

    url: str
    tap: Tap
    process: asyncio.subprocess.Process
    _http: aiohttp.ClientSession
    _log: Path

    @property
    def log(self) -> str:
        """What the function and the emulator wrote."""
        return self._log.read_text(errors="replace")

    async def invoke(self, event: object) -> Outcome:
        """Invoke once; `event` is bytes, or becomes JSON."""
        content = event if isinstance(event, bytes) else json.dumps(event).encode()
        async with self._http.post(self.url + _INVOCATIONS, data=BytesIO(content)) as response:
            return Outcome(status=response.status, content=await response.read())

    def signal_function(self, number: int) -> None:
        """Send a signal to the function's process."""
        [pid] = self._children()
        os.kill(pid, number)

    def _children(self) -> list[int]:
        tasks = Path(f"/proc/{self.process.pid}/task").iterdir()
        return [int(pid) for it in tasks for pid in (it / "children").read_text().split()]

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            # It ends its function, too.
            self.process.terminate()
        await self.process.wait()


@asynccontextmanager
async def emulated(
    function: FunctionConfig, log: Path, *, timeout_s: int
) -> AsyncIterator[AwsEmulator]:
    """Start the emulator; it starts the function at the first invocation."""
    binary = rie_binary()
    front, api = _free_address(), _free_address()
    tap = Tap(target=("127.0.0.1", api))
    server = await asyncio.start_server(tap.accept, "127.0.0.1", 0)
    tapped = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    # The emulator sets the address of its own Runtime API; `env` puts the tap in its place.
    command = ["env", f"AWS_LAMBDA_RUNTIME_API={tapped}", *function.argv]
    ours = function.environment(tapped) | {"AWS_LAMBDA_FUNCTION_TIMEOUT": str(timeout_s)}
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            binary,
            *("--runtime-interface-emulator-address", f"127.0.0.1:{front}"),
            *("--runtime-api-address", f"127.0.0.1:{api}"),
            *command,
            env=ours,
            cwd=function.task_root,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=output,
            stderr=asyncio.subprocess.STDOUT,
        )
    url = f"http://127.0.0.1:{front}"
    timeout = aiohttp.ClientTimeout(_PATIENCE_S)
    async with server, aiohttp.ClientSession(timeout=timeout) as http:
        running = AwsEmulator(url=url, tap=tap, process=process, _http=http, _log=log)
        async with running:
            await _listens(front)
            yield running


def _free_address() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def _listens(port: int) -> None:
    async with asyncio.timeout(_PATIENCE_S):
        while True:
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.02)
            else:
                writer.close()
                return
