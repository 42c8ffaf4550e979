"""The command line, run against a local gateway of its own."""

import os
import pty
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass

import openai
import pytest
from click.testing import CliRunner

from tests.local_server import ROOT, TOLLGATE, LocalServer, environment, local_server
from tollgate.cli.main import main


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """Start a gateway for one module, which reads all that a gateway keeps."""
    yield from start(tmp_path_factory)


def start(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalServer]:
    """Yield a gateway that has answered twice."""
    with local_server(tmp_path_factory.mktemp("dev")) as started:
        with openai.OpenAI(base_url=started.base_url, api_key=started.key, max_retries=0) as client:
            for content in ("one", "two"):
                client.chat.completions.create(
                    model="test/echo", messages=[{"role": "user", "content": content}]
                )
        yield started


@dataclass(frozen=True)
class Ended:
    """A command that has ended."""

    returncode: int
    stdout: str
    stderr: str


def run(server: LocalServer, *arguments: str, **variables: str) -> Ended:
    """Run a command within this process: a process for each would cost half a second of imports."""
    reached = {"TOLLGATE_URL": server.base_url, "TOLLGATE_KEY": server.management_key}
    # None takes a variable away.
    given = {**dict.fromkeys(os.environ), **environment(), **reached, **variables}
    ended = CliRunner().invoke(main, arguments, env=given, prog_name="tollgate")
    if ended.exception is not None and not isinstance(ended.exception, SystemExit):
        raise ended.exception
    return Ended(ended.exit_code, ended.stdout, ended.stderr)


def printed(server: LocalServer, *arguments: str) -> str:
    done = run(server, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def on_screen(server: LocalServer, *arguments: str, columns: int) -> list[str]:
    """What a person sees on a terminal of this width."""
    reader, terminal = pty.openpty()
    reached = {"TOLLGATE_URL": server.base_url, "TOLLGATE_KEY": server.management_key}
    with subprocess.Popen(
        [TOLLGATE, *arguments],
        cwd=ROOT,
        env={**environment(), **reached, "TERM": "xterm", "COLUMNS": str(columns)},
        stdout=terminal,
        stderr=subprocess.PIPE,
    ) as shown:
        os.close(terminal)
        _, remarks = shown.communicate(timeout=60)
        assert shown.returncode == 0
    with os.fdopen(reader, "rb", buffering=0) as screen:
        try:
            written = screen.read(65_536)
        except OSError:
            # A closed terminal on which nothing was written cannot be read.
            written = b""
        table = re.sub(r"\x1b\[[0-9;]*m", "", written.decode())
        return [*table.splitlines(), *remarks.decode().splitlines()]
