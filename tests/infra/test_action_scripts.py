"""The action's steps that change a gateway, each by itself, with a stand-in of `tollgate`.

Keeps C97, C100.
"""

import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tests.functional.cut_wheels import cut
from tests.infra.action import git, run_step

STAND_IN = '#!/bin/sh\nprintf "%s\\n" "$*" >> "$HOME/called.txt"\n'


def test_an_upgrade_is_proposed_with_its_effects(tmp_path: Path) -> None:
    work, stand_in = tmp_path / "work", tmp_path / "tollgate"
    work.mkdir()
    (work / "requirements.txt").write_text("tollgate-llm==1.0.0\n")
    git(work, "init --quiet --initial-branch=main", "add --all", "commit --quiet -m begin")
    stand_in.write_text(
        f"{STAND_IN}echo 'Upgrade tollgate-llm 1.0.0 → 1.1.0'\ncp \"$HOME/next\" requirements.txt\n"
    )
    stand_in.chmod(0o755)
    for pinned, differs in (("1.0.0", False), ("1.1.0", True)):
        (tmp_path / "next").write_text(f"tollgate-llm=={pinned}\n")
        ended = run_step("Upgrade", work, TOLLGATE=str(stand_in), TOLLGATE_REPOSITORY="a/b")
        assert ended.returncode == 0, ended.stderr
        assert (tmp_path / "output").exists() is differs
    assert (tmp_path / "output").read_text() == (
        "title=Upgrade tollgate-llm 1.0.0 → 1.1.0\ndiffers=true\n"
    )
    assert "1.0.0 → 1.1.0" in (tmp_path / "body.md").read_text()
    assert (tmp_path / "called.txt").read_text() == "upgrade\n" * 2


@pytest.mark.parametrize(
    ("status", "printed", "key", "planned"),
    [
        (0, "x", "k", True),
        (2, "x", "k", True),
        (1, "x", "k", True),
        (1, "", "k", False),
        (2, "x", "", False),
    ],
)
def test_c100_a_pull_requests_access_is_planned_where_there_is_a_key(
    tmp_path: Path, status: int, printed: str, key: str, *, planned: bool
) -> None:
    work, stand_in = tmp_path / "proposed", tmp_path / "tollgate"
    work.mkdir()
    stand_in.write_text(f"{STAND_IN}printf '{printed}'\nexit {status}\n")
    stand_in.chmod(0o755)
    variables = {"TOLLGATE": str(stand_in), "TOLLGATE_URL": "https://a/v1", "TOLLGATE_KEY": key}
    assert run_step("Plan access", work, **variables).returncode == 0
    assert not (tmp_path / "called.txt").exists()
    (work / "access.yaml").write_text("version: 1\n")
    ended = run_step("Plan access", work, **variables)
    assert ended.returncode == (1 if status == 1 and key else 0), ended.stderr
    assert (tmp_path / "called.txt").exists() is bool(key)
    said = (tmp_path / "output").read_text() if (tmp_path / "output").exists() else ""
    assert said == ("planned=true\n" if planned else "")
    (work / "access.yaml").unlink()
    (work / "access.yaml").symlink_to(stand_in)
    assert run_step("Plan access", work, **variables).returncode == 1


def test_c100_access_is_applied_with_the_commit(tmp_path: Path) -> None:
    work, stand_in = tmp_path / "work", tmp_path / "tollgate"
    work.mkdir()
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    ended = run_step("Apply access", work, TOLLGATE=str(stand_in), GITHUB_SHA="5c1d0e7")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "called.txt").read_text() == "access apply --commit 5c1d0e7\n"


def test_the_stack_that_the_workflow_names_is_published_to(tmp_path: Path) -> None:
    work, stand_in = tmp_path / "work", tmp_path / "tollgate"
    work.mkdir()
    stand_in.write_text(STAND_IN)
    stand_in.chmod(0o755)
    ended = run_step("Publish", work, TOLLGATE=str(stand_in), STACK="tollgate-prod")
    assert ended.returncode == 0, ended.stderr
    assert (tmp_path / "called.txt").read_text() == "publish --stack tollgate-prod\n"


@pytest.mark.nightly
def test_c97_the_pinned_wheels_are_installed_by_their_hashes(tmp_path: Path) -> None:
    work, index = tmp_path / "work", tmp_path / "index"
    work.mkdir()
    cut(index, "1.2.3", {})
    pins = (
        f"{wheel.name.split('-')[0].replace('_', '-')}==1.2.3"
        f" --hash=sha256:{sha256(wheel.read_bytes()).hexdigest()}\n"
        for wheel in index.iterdir()
    )
    (work / "requirements.txt").write_text("".join(pins))
    offline = {"COMMAND": "", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    installed = run_step("Install", work, PATH=path, **offline)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert (tmp_path / "output").read_text() == f"command={tmp_path}/tollgate/bin/tollgate\n"
    assert [*tmp_path.glob("tollgate/lib/python3*/site-packages/tollgate_llm-1.2.3.dist-info")]
