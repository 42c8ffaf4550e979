"""DynamoDB for the local server: ministack as a child process."""

import fcntl
import os
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from tollgate.installation import environment

_STOP_S: Final = 10.0


class Ministack(Struct, frozen=True):
    """A running ministack process and its files."""

    state: Path
    url: str
    child: subprocess.Popen[bytes]
    log: Path

    def raise_if_stopped(self) -> None:
        """Raise ClickException if the child process has ended."""
        if self.child.poll() is not None:
            raise click.ClickException(f"ministack stopped; see {self.log}")


@contextmanager
def lock_folder(state: Path) -> Iterator[None]:
    """Lock a state folder for one server; raise ClickException if the folder is locked."""
    state.mkdir(parents=True, exist_ok=True)
    with (state / "lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as taken:
            raise click.ClickException(
                f"Another `tollgate dev` uses the state in {state}/; stop that process, or use "
                "another folder and port: `--state DIRECTORY --port PORT`."
            ) from taken
        yield


@contextmanager
def ministack(state: Path) -> Iterator[Ministack]:
    """Run ministack on 127.0.0.1, and stop it on exit, so that it writes its tables to `state`."""
    command = environment("ministack") / "bin" / "ministack"
    port = _free_port()
    log = state / "ministack.log"
    with log.open("wb") as output:
        # In its own session, the child does not receive Ctrl-C, so the server can stop before it.
        child = subprocess.Popen(  # noqa: S603 - our own pinned tool, no caller's words
            [command],
            env=_environment(state.resolve(), port),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        yield Ministack(state, f"http://127.0.0.1:{port}", child, log)
    finally:
        child.send_signal(signal.SIGTERM)
        try:
            child.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()


def _environment(state: Path, port: int) -> dict[str, str]:
    return {
        "BIND_HOST": "127.0.0.1",
        "GATEWAY_PORT": str(port),
        "SERVICES": "dynamodb",
        "PERSIST_STATE": "1",
        "STATE_DIR": str(state / "ministack"),
        "HOME": str(state),
        "PATH": os.defpath,
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
