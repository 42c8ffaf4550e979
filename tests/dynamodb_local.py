"""DynamoDB Local, the vendor's own engine: tests run it where DDB_LOCAL_DIR names its folder.

Its licence forbids passing it on, so nothing here downloads it. The folder is the one with
`DynamoDBLocal.jar` and `DynamoDBLocal_lib` in it.
"""

import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.ministack import free_port, wait_until_it_answers

FOLDER_VARIABLE = "DDB_LOCAL_DIR"
_JAR = "DynamoDBLocal.jar"
_LIBRARIES = "DynamoDBLocal_lib"
# One compiler tier and one collector: it starts in half the time, and memory stays small.
_JVM = ("-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1")
_STOPS_WITHIN_S = 5


class NotInstalled(Exception):
    """It cannot be run here, and why."""


def dynamodb_local_folder() -> Path:
    """Where it lies."""
    named = os.environ.get(FOLDER_VARIABLE)
    if not named:
        raise NotInstalled(f"{FOLDER_VARIABLE} names no folder with DynamoDB Local")
    folder = Path(named)
    for part in (_JAR, _LIBRARIES):
        if not (folder / part).exists():
            raise NotInstalled(f"{FOLDER_VARIABLE}={named} has no {part}")
    return folder


@contextmanager
def running_dynamodb_local(folder: Path, log: Path) -> Iterator[str]:
    """A fresh, empty one in memory, on a loopback port; its endpoint URL."""
    java = shutil.which("java")
    if java is None:
        raise NotInstalled("DynamoDB Local needs java, and there is none on PATH")
    port = free_port()
    command = [
        java,
        *_JVM,
        f"-Djava.library.path={folder / _LIBRARIES}",
        "-jar",
        str(folder / _JAR),
        *("-inMemory", "-sharedDb", "-disableTelemetry"),
        *("-port", str(port)),
    ]
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=folder)
        try:
            url = f"http://127.0.0.1:{port}"
            wait_until_it_answers(url, process)
            yield url
        finally:
            process.terminate()
            try:
                process.wait(_STOPS_WITHIN_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


@pytest.fixture(scope="session")
def dynamodb_local_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The endpoint of the session's DynamoDB Local."""
    log = tmp_path_factory.mktemp("dynamodb-local") / "log"
    try:
        folder = dynamodb_local_folder()
        with running_dynamodb_local(folder, log) as url:
            yield url
    except NotInstalled as missing:
        pytest.skip(str(missing))
