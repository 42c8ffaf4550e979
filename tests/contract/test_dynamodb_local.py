"""The launcher of DynamoDB Local: what it needs, what it says without it, and that it runs."""

import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import ClassVar

import pytest

from tests.dynamodb_local import (
    FOLDER_VARIABLE,
    NotInstalled,
    dynamodb_local_folder,
    running_dynamodb_local,
)
from tests.ministack import wait_until_it_answers
from tests.stores import aws_client, fresh_tables


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "DynamoDBLocal.jar").touch()
    (tmp_path / "DynamoDBLocal_lib").mkdir()
    return tmp_path


def java_that(directory: Path, script: str) -> Path:
    java = directory / "bin" / "java"
    java.parent.mkdir()
    java.write_text(f"#!/bin/sh\n{script}\n")
    java.chmod(0o755)
    return java.parent


def test_without_a_folder_it_says_which_variable_names_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(FOLDER_VARIABLE, raising=False)
    with pytest.raises(NotInstalled, match=FOLDER_VARIABLE):
        dynamodb_local_folder()


@pytest.mark.parametrize("part", ["DynamoDBLocal.jar", "DynamoDBLocal_lib"])
def test_a_folder_that_lacks_a_part_is_named_with_it(
    folder: Path, part: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(FOLDER_VARIABLE, str(folder))
    assert dynamodb_local_folder() == folder
    (folder / part).rename(folder / "elsewhere")
    with pytest.raises(NotInstalled, match=f"{folder.name} has no {part}"):
        dynamodb_local_folder()


def test_without_java_it_says_so(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(folder))
    with (
        pytest.raises(NotInstalled, match="java"),
        running_dynamodb_local(folder, folder / "log"),
    ):
        pytest.fail("nothing can run")


def test_one_that_ends_at_once_is_an_error_and_not_a_skip(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(java_that(folder, "echo no such class; exit 3")))
    with (
        pytest.raises(RuntimeError, match="ended with 3"),
        running_dynamodb_local(folder, folder / "log"),
    ):
        pytest.fail("nothing runs")
    assert (folder / "log").read_text() == "no such class\n"


async def test_one_that_runs_keeps_tables(dynamodb_local_url: str) -> None:
    client = aws_client(dynamodb_local_url)
    tables = await fresh_tables(client)
    names = (await client.call("ListTables", {}))["TableNames"]
    await client.close()
    assert {tables.core, tables.ledger, tables.generations} <= set(names)


class Starting(BaseHTTPRequestHandler):
    """What an engine answers while it starts, and then."""

    statuses: ClassVar[list[int]] = []

    def do_GET(self) -> None:
        self.send_response(self.statuses.pop(0))
        self.send_header("content-length", "0")
        self.end_headers()

    def log_request(self, code: object = "-", size: object = "-") -> None:
        return


@pytest.mark.parametrize("ready", [200, 400])
def test_one_that_still_starts_is_waited_for(ready: int) -> None:
    Starting.statuses = [503, 503, ready]
    sleeper = [sys.executable, "-c", "import time; time.sleep(60)"]
    with (
        HTTPServer(("127.0.0.1", 0), Starting) as server,
        subprocess.Popen(sleeper) as process,
    ):
        threading.Thread(target=server.serve_forever, daemon=True).start()
        wait_until_it_answers(f"http://127.0.0.1:{server.server_port}/", process)
        server.shutdown()
        process.kill()
    assert Starting.statuses == []
