"""`tollgate batches` against a local gateway.

Keeps C83.
"""

import json
from pathlib import Path

import pytest

from tests.functional.command_line import run
from tests.functional.test_batches import lines
from tests.local_server import LocalServer

pytestmark = pytest.mark.nightly


def test_c83_a_file_is_run_watched_and_its_results_are_printed(
    server: LocalServer, tmp_path: Path
) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_bytes(lines(3))
    key = {"TOLLGATE_KEY": server.key}
    done = run(server, "batches", "create", str(file), "--watch", "--json", **key)
    assert done.returncode == 0, done.stderr
    batch = json.loads(done.stdout)
    assert (batch["status"], batch["request_counts"]["completed"]) == ("completed", 3)
    printed = run(server, "batches", "results", batch["id"], **key).stdout.splitlines()
    assert [json.loads(line)["custom_id"] for line in printed] == ["n0", "n1", "n2"]
    assert batch["id"] in run(server, "batches", "ls", **key).stdout
    errors = run(server, "batches", "results", batch["id"], "--errors", **key)
    assert (errors.returncode, "no such file" in errors.stderr) == (1, True)
    assert run(server, "batches", "cancel", batch["id"], **key).returncode == 0


def test_c83_a_bad_file_is_refused_with_its_line(server: LocalServer, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_bytes(lines(2) + b"{}\n")
    key = {"TOLLGATE_KEY": server.key}
    refused = run(server, "batches", "create", str(file), "--watch", **key)
    assert refused.returncode == 1
    assert "line 3: " in refused.stderr
    file.write_bytes(b"nothing\n")
    refused = run(server, "batches", "create", str(file), **key)
    assert "names no `url`" in refused.stderr
