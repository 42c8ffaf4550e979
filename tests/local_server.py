"""`tollgate dev` as a child process, as a newcomer starts it."""

import json
import os
import shlex
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

ROOT = Path(__file__).parents[1]
TOLLGATE = Path(sys.executable).with_name("tollgate")
_START_S = 60.0
_STOP_S = 20.0


@dataclass(frozen=True)
class LocalServer:
    """A server that answers, and what it wrote when it began to."""

    process: subprocess.Popen[str]
    base_url: str
    key: str
    management_key: str
    pid: int

    def interrupt(self) -> str:
        """Press Ctrl-C; what the server printed in all."""
        os.killpg(self.process.pid, signal.SIGINT)
        output, _ = self.process.communicate(timeout=_STOP_S)
        return output


def environment() -> dict[str, str]:
    """This environment without what could make a provider or AWS answer."""
    return {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("AWS_", "TOLLGATE_", "MAKE", "MFLAGS"))
        and not name.endswith("_API_KEY")
    }


@contextmanager
def local_server(
    state: Path,
    *,
    by_make: bool = False,
    routing: Path | None = None,
    extra: Mapping[str, str] | None = None,
    port: int = 0,
    tollgate: Path = TOLLGATE,
    folder: Path = ROOT,
) -> Iterator[LocalServer]:
    """Start it, wait until it is ready, and end its whole process group afterwards."""
    ready_file = state / "ready.json"
    options = ["--port", str(port), "--state", str(state), "--ready-file", str(ready_file)]
    if routing is not None:
        options += ["--routing", str(routing)]
    command = [str(tollgate), "dev", *options]
    if by_make:
        command = ["make", "run", f"DEV={shlex.join(options)}"]
    process = subprocess.Popen(
        command,
        cwd=folder,
        env=environment() | dict(extra or {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    try:
        yield LocalServer(process=process, **_ready(process, ready_file))
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
            process.communicate(timeout=_STOP_S)


def _ready(process: subprocess.Popen[str], ready_file: Path) -> dict[str, str | int]:
    give_up_s = monotonic() + _START_S
    while not ready_file.exists():
        if process.poll() is not None:
            raise AssertionError(f"it ended:\n{process.communicate()[0]}")
        if monotonic() > give_up_s:
            raise AssertionError("it is not ready")
        sleep(0.05)
    content: dict[str, str | int] = json.loads(ready_file.read_text())
    return content
