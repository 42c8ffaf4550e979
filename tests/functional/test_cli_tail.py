"""`tollgate generations tail`: a table that follows, TSV in a pipe, JSON lines.

Keeps C67.
"""

import json
import os
import pty
import re
import select
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import openai
import pytest

from tests.functional.command_line import run
from tests.local_server import ROOT, TOLLGATE, LocalServer, environment

HEAD = ["id", "created_at", "status", "usd", "model", "key", "tokens", "ms", "provider"]


@contextmanager
def tail(
    server: LocalServer, *options: str, stdout: int = subprocess.PIPE
) -> Iterator[subprocess.Popen[str]]:
    reached = {"TOLLGATE_URL": server.base_url, "TOLLGATE_KEY": server.management_key}
    with subprocess.Popen(
        [TOLLGATE, "generations", "tail", *options],
        cwd=ROOT,
        env={**environment(), **reached, "TERM": "xterm", "COLUMNS": "100"},
        stdout=stdout,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def generate_until_readable(server: LocalServer, readable: int) -> list[str]:
    """Generate until there is output, because the first look may come after the first of them."""
    made = []
    with openai.OpenAI(base_url=server.base_url, api_key=server.key) as client:
        while not select.select([readable], [], [], 0.5)[0]:
            reply = client.chat.completions.create(
                model="test/echo", messages=[{"role": "user", "content": "now"}]
            )
            made.append(reply.id)
    return made


def interrupt(process: subprocess.Popen[str]) -> None:
    """Press Ctrl-C, and see that the command ends well and says nothing."""
    process.send_signal(signal.SIGINT)
    assert process.wait(timeout=30) == 0
    assert process.stderr is not None
    assert process.stderr.read() == ""


def test_c67_generations_are_followed_as_tsv_in_a_pipe(server: LocalServer) -> None:
    with tail(server) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "\t".join(HEAD) + "\n"
        made = generate_until_readable(server, process.stdout.fileno())
        row = process.stdout.readline().rstrip("\n").split("\t")
        interrupt(process)
    assert row[0] in made
    assert row[4] == "test/echo"
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", row[1])


def test_c67_generations_are_followed_as_json_lines(server: LocalServer) -> None:
    with tail(server, "--json") as process:
        assert process.stdout is not None
        made = generate_until_readable(server, process.stdout.fileno())
        record = json.loads(process.stdout.readline())
        interrupt(process)
    assert record["id"] in made


def test_c67_a_person_sees_a_table_that_follows(server: LocalServer) -> None:
    reader, terminal = pty.openpty()
    with tail(server, stdout=terminal) as process, os.fdopen(reader, "rb", buffering=0) as screen:
        os.close(terminal)
        head = screen.readline().decode()
        made = generate_until_readable(server, screen.fileno())
        row = screen.readline().decode()
        interrupt(process)
    assert re.sub(r"\x1b\[[0-9;]*m", "", head).split() == HEAD[:5]
    assert row.split()[0] in made
    assert row.index("test/echo") == re.sub(r"\x1b\[[0-9;]*m", "", head).index("model")


@pytest.mark.parametrize("option", ["--csv"])
def test_c67_a_tail_is_no_csv(server: LocalServer, option: str) -> None:
    refused = run(server, "generations", "tail", option)
    assert refused.returncode == 2
    assert "TSV in a pipe, or JSON lines" in refused.stderr
