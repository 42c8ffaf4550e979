"""The workflow that tries the newest clients: its rights, and its issue about what differs."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.infra.test_release_workflows import actions, commands, workflow

CLIENTS = workflow("clients.yml")
TRY, ISSUE = CLIENTS["jobs"]["try"], CLIENTS["jobs"]["issue"]


def test_c93_the_job_that_runs_clients_has_no_rights() -> None:
    assert CLIENTS["permissions"] == {}
    assert TRY["permissions"] == {"contents": "read"}
    assert TRY["steps"][0]["with"]["persist-credentials"] == "false"
    assert "secrets." not in str(CLIENTS)
    assert "github.token" not in str(TRY)


def test_c93_the_job_with_rights_runs_no_client() -> None:
    assert ISSUE["permissions"] == {"issues": "write"}
    assert actions(ISSUE) == ["actions/download-artifact"]
    (script,) = commands(ISSUE)
    assert "${{" not in script
    assert "python" not in script


def test_it_runs_each_night() -> None:
    assert set(CLIENTS["on"]) == {"schedule", "workflow_dispatch"}


@pytest.fixture
def run(tmp_path: Path) -> Any:
    """Run the script of the issue with a `gh` that writes down how it is called."""
    program = tmp_path / "gh"
    program.write_text(
        '#!/bin/sh\nprintf "%s\\n" "$*" >> calls.txt\ntest "$2" != list || printf "%s" "$OPEN"\n'
    )
    program.chmod(0o755)

    def run(changes: str, open_issue: str = "") -> str:
        (tmp_path / "changes.txt").write_text(changes)
        (tmp_path / "calls.txt").write_text("")
        environment = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "RUN": "a run"}
        subprocess.run(
            ["bash", "-e", "-c", *commands(ISSUE)],
            cwd=tmp_path,
            env=environment | {"OPEN": open_issue},
            check=True,
        )
        return (tmp_path / "calls.txt").read_text()

    return run


def test_what_differs_is_an_issue(run: Any, tmp_path: Path) -> None:
    assert "issue create --title" in run("| a | b |\n")
    assert (tmp_path / "body.md").read_text().startswith("| a | b |\n")


def test_an_open_issue_is_edited(run: Any) -> None:
    calls = run("| a | b |\n", open_issue="7")
    assert "issue edit 7 --body-file body.md" in calls
    assert "create" not in calls


def test_nothing_that_differs_is_no_issue(run: Any) -> None:
    assert run("") == ""
