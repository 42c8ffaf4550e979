"""The environments of the Makefile: what is said where they cannot be made.

Keeps no contract statement.
"""

import subprocess
from pathlib import Path

from tests.local_server import ROOT

ENVIRONMENTS = ROOT / "infra" / "environments"


def run(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ENVIRONMENTS / script), *arguments],
        capture_output=True,
        text=True,
        check=False,
    )


def test_an_install_that_fails_ends_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    python = tmp_path / "bin" / "python"
    python.write_text("#!/bin/sh\necho ERROR: no connection\nexit 1\n")
    python.chmod(0o755)
    ended = run("install", str(tmp_path), "--requirement", "run.txt")
    assert ended.returncode == 1
    said = (
        f"tollgate: run.txt cannot be installed, see {tmp_path}/pip.log; without a connection to "
        "the package index, name a mirror in PIP_INDEX_URL or a proxy in HTTPS_PROXY, then run "
        "the command again"
    )
    # The reason is printed only where no terminal is.
    assert ended.stderr.splitlines() == ["ERROR: no connection", said]


def test_a_machine_without_a_new_python_is_told_how_to_name_one() -> None:
    ended = run("choose_python", "no-such-python")
    assert ended.returncode == 1
    (said,) = ended.stderr.splitlines()
    assert said.endswith("Name one: make PYTHON=/path/to/python3")
