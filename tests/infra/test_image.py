"""The container image without Docker: its commands in a folder, and what it starts. Keeps C97."""

import asyncio
import json
import re
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest

from tests.contract.conftest import stores_at
from tests.infra.test_package import build
from tests.local_server import ROOT, environment
from tests.ministack import free_port, ministack_url
from tests.stores import REGION, DynamoStores

__all__ = ["ministack_url"]

TEXT: Final = (ROOT / "Dockerfile").read_text().replace("\\\n", "")
BUILD, SERVE = TEXT.split("\nFROM ")[1:]
PATIENCE_S: Final = 60.0


def instructions(stage: str, name: str) -> list[str]:
    return re.findall(rf"^{name} (.*)$", stage, re.M)


def copy(line: str, source: Path, folder: Path) -> None:
    """Copy as a line of the Dockerfile says, from a build context into a folder."""
    *names, target = line.split()
    for found in (each for name in names for each in source.glob(name)):
        to = folder / (Path(target) / found.name if target == "./" else Path(target))
        to.parent.mkdir(parents=True, exist_ok=True)
        if found.is_dir():
            shutil.copytree(found, to)
        else:
            shutil.copy(found, to)


@pytest.mark.nightly
def test_c97_the_image_is_built_serves_and_is_healthy(ministack_url: str, tmp_path: Path) -> None:
    context, source, opt = tmp_path / "context", tmp_path / "src", tmp_path / "opt"
    source.mkdir()
    build(ROOT, context / "dist")
    for name in ("infra", "routing.yaml"):
        (context / name).symlink_to(ROOT / name)
    plain = {name: it for name, it in environment().items() if name != "PYTHONPATH"}
    path = f"{opt}/tollgate/bin:{Path(sys.executable).parent}:/usr/bin:/bin"
    for kind, line in re.findall(r"^(COPY|RUN) (.*)$", BUILD, re.M):
        if kind == "COPY":
            copy(line, context, source)
            continue
        command = line.replace("/opt/tollgate", f"{opt}/tollgate")
        ran = subprocess.run(
            ["sh", "-c", command],
            cwd=source,
            env=plain | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert ran.returncode == 0, (command, ran.stderr)
    installed = {file.name for file in opt.glob("tollgate/lib/python3*/site-packages/*")}
    assert not {"pip", "hatchling", "pluggy"} & installed
    assert "tollgate" in installed
    # The user of the image is not the one who built it.
    files = [file for file in opt.rglob("*") if not file.is_symlink()]
    assert all(file.stat().st_mode & stat.S_IROTH for file in files)
    serves_and_is_healthy(ministack_url, opt, plain)


def serves_and_is_healthy(url: str, opt: Path, plain: dict[str, str]) -> None:
    """Start what the image starts, and ask as its health check does."""
    stated = dict(each.split("=", 1) for each in instructions(SERVE, "ENV")[0].split())
    variables = {name: it.replace("/opt", str(opt)) for name, it in stated.items()}
    port = str(free_port())
    (start,) = instructions(SERVE, "CMD")
    (check,) = re.findall(r"^HEALTHCHECK .* CMD (\[.*\])$", SERVE, re.M)
    command, question = (
        [word.replace("0.0.0.0", "127.0.0.1").replace("8080", port) for word in json.loads(each)]
        for each in (start, check)
    )
    variables |= {"PATH": f"{opt}/tollgate/bin:/usr/bin:/bin"} | asyncio.run(tables(url))
    with subprocess.Popen(
        [opt / "tollgate" / "bin" / command[0], *command[1:]],
        env=plain | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    ) as server:
        try:
            python = [opt / "tollgate" / "bin" / question[0], *question[1:]]
            given_up_s = time.monotonic() + PATIENCE_S
            while subprocess.run(python, capture_output=True, check=False).returncode:
                assert server.poll() is None, server.communicate()[0]
                assert time.monotonic() < given_up_s
        finally:
            server.terminate()


async def tables(url: str) -> dict[str, str]:
    """Return the variables that name the tables of a new store."""
    async with stores_at(url) as stores:
        assert isinstance(stores, DynamoStores)
        names = stores.tables
    return {
        "TOLLGATE_CORE_TABLE": names.core,
        "TOLLGATE_LEDGER_TABLE": names.ledger,
        "TOLLGATE_GENERATIONS_TABLE": names.generations,
        "TOLLGATE_DYNAMODB_ENDPOINT_URL": url,
        "AWS_ACCESS_KEY_ID": "test",
        "AWS_SECRET_ACCESS_KEY": "test",
        "AWS_REGION": REGION,
    }
