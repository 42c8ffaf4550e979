"""The processes of a soak: `tollgate serve` twice, and what the system says of each."""

import asyncio
import os
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import aiohttp

from tests.local_server import TOLLGATE
from tests.local_server import environment as plain
from tests.ministack import free_port
from tests.soak.criteria import Sample

_STARTS_WITHIN_S: Final = 60.0
_STOPS_WITHIN_S: Final = 30.0


@dataclass
class SoakServer:
    """A process that may be killed and started again on the same port."""

    number: int
    variables: Mapping[str, str]
    log_file: Path
    port: int = field(default_factory=free_port)
    starts: int = 0
    process: asyncio.subprocess.Process | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def start(self, http: aiohttp.ClientSession) -> None:
        """Start the process; return once it answers."""
        with self.log_file.open("ab") as log:
            self.process = await asyncio.create_subprocess_exec(
                *(TOLLGATE, "serve", "--port", str(self.port), "--drain-s", "5"),
                env={**plain(), **self.variables},
                stdout=log,
                stderr=log,
            )
        self.starts += 1
        gives_up_s = time.monotonic() + _STARTS_WITHIN_S
        while time.monotonic() < gives_up_s and self.process.returncode is None:
            try:
                async with http.get(f"{self.url}/v1/health/live"):
                    return
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)
        raise RuntimeError(f"a server did not start: {self.log_file.read_text()[-2000:]}")

    async def kill(self) -> None:
        """Kill the process without a word."""
        assert self.process is not None
        self.process.kill()
        await self.process.wait()

    async def stop(self) -> None:
        """End the process as an operator does, and by force where it does not end."""
        if self.process is None or self.process.returncode is not None:
            return
        self.process.send_signal(signal.SIGTERM)
        try:
            await asyncio.wait_for(self.process.wait(), _STOPS_WITHIN_S)
        except TimeoutError:
            await self.kill()

    async def sample(self, http: aiohttp.ClientSession, at_s: float) -> Sample | None:
        """Return what the process uses at this moment; None if it does not run."""
        process = self.process
        if process is None or process.returncode is not None:
            return None
        try:
            async with http.get(f"{self.url}/metrics") as reply:
                metrics = _read_metrics(await reply.text())
            folder = Path(f"/proc/{process.pid}")
            links = [_target_of(it) for it in (folder / "fd").iterdir()]
            status = dict(
                line.split(":", 1) for line in (folder / "status").read_text().splitlines()
            )
        except (aiohttp.ClientError, OSError):
            return None
        return Sample(
            at_s=at_s,
            server=self.number,
            life=self.starts,
            rss_mb=int(status["VmRSS"].split()[0]) / 1024,
            descriptors=len(links),
            connections=sum(link.startswith("socket:") for link in links),
            threads=int(status["Threads"]),
            tasks=int(metrics["tollgate_tasks"]),
            in_flight=int(metrics["tollgate_requests_in_flight"]),
            defects=int(metrics["tollgate_defects_total"]),
        )


def _target_of(link: Path) -> str:
    try:
        return os.readlink(link)
    except OSError:
        return ""


def _read_metrics(text: str) -> dict[str, float]:
    """Return the metrics that have no labels."""
    lines = (line.split() for line in text.splitlines() if line and not line.startswith("#"))
    return {line[0]: float(line[1]) for line in lines if len(line) == 2}
