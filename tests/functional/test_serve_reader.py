"""`tollgate serve` says how it confines the readers of documents, or does not start.

Keeps C72.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.hostile.test_documents import permits_namespaces
from tests.local_server import ROOT, TOLLGATE
from tests.local_server import environment as plain
from tollgate.routing.file.compile import compile_catalog


@pytest.fixture(scope="module")
def catalog(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("catalog") / "routing.json"
    file.write_bytes(compile_catalog(ROOT / "routing.yaml").content)
    return file


@contextmanager
def server(catalog: Path, **more: str) -> "Iterator[subprocess.Popen[str]]":
    variables = {**plain(), "NO_COLOR": "1", "TOLLGATE_CATALOG_FILE": str(catalog), **more}
    command = [str(TOLLGATE), "serve", "--port", "0"]
    with subprocess.Popen(
        command, env=variables, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            yield process
        finally:
            process.kill()


@pytest.mark.skipif(sys.platform != "linux", reason="other platforms have limits alone")
def test_c72_a_server_says_how_documents_are_read(catalog: Path) -> None:
    with server(catalog) as process:
        assert process.stdout is not None
        # The server also says that it finds no store here.
        lines = iter(process.stdout.readline, "")
        assert any("listens on" in line for line in lines)
        said = next(lines)
    namespaces = "namespaces without network, " if permits_namespaces() else ""
    assert said == f"Documents are read with {namespaces}a filter of system calls.\n"


@pytest.mark.nightly
def test_a_server_does_not_start_for_a_reader_user_that_does_not_exist(catalog: Path) -> None:
    with server(catalog, TOLLGATE_READER_USER="nobody-of-this-name") as process:
        output, _ = process.communicate(timeout=30)
    assert process.returncode == 1
    assert "TOLLGATE_READER_USER" in output
