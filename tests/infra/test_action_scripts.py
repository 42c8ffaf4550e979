"""The action's steps that change a gateway, each by itself, with a stand-in of `tollgate`.

Keeps C97, C100.
"""

import re
import shutil
import sys
from hashlib import sha256
from pathlib import Path

import pytest
import yaml

from tests.functional.cut_wheels import cut
from tests.infra.action import ACTION, FOLDER, STEPS, git, run_step
from tests.local_server import ROOT

STAND_IN = '#!/bin/sh\nprintf "%s\\n" "$*" >> "$HOME/called.txt"\n'


def test_an_upgrade_is_proposed_with_its_effects(tmp_path: Path) -> None:
    work, stand_in = tmp_path / "work", tmp_path / "tollgate"
    work.mkdir()
    (work / "requirements.txt").write_text("tollgate-llm==1.0.0\n")
    git(work, "init --quiet --initial-branch=main", "add --all", "commit --quiet -m begin")
    stand_in.write_text(
        f"{STAND_IN}echo 'tollgate-llm 1.0.0 → 1.1.0'\ncp \"$HOME/next\" requirements.txt\n"
    )
    stand_in.chmod(0o755)
    for pinned, differs in (("1.0.0", False), ("1.1.0", True)):
        (tmp_path / "next").write_text(f"tollgate-llm=={pinned}\n")
        ended = run_step("Upgrade", work, TOLLGATE=str(stand_in), TOLLGATE_REPOSITORY="a/b")
        assert ended.returncode == 0, ended.stderr
        assert (tmp_path / "output").exists() is differs
    assert (tmp_path / "output").read_text() == ("title=tollgate-llm 1.0.0 → 1.1.0\ndiffers=true\n")
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


RUNNERS = {
    "RUNNER_TEMP",
    "GITHUB_ACTION_PATH",
    "GITHUB_OUTPUT",
    "GITHUB_SHA",
    "GITHUB_STEP_SUMMARY",
}


def test_each_script_reads_only_what_its_step_or_the_runner_states() -> None:
    for step in STEPS:
        for file in re.findall(r"\$GITHUB_ACTION_PATH/(\w+\.sh)", step.get("run", "")):
            read = set(re.findall(r"\$\{?([A-Z_]+)", (FOLDER / file).read_text()))
            assert read - RUNNERS <= step["env"].keys(), step["name"]


def test_the_generated_workflows_state_inputs_that_the_action_takes(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    words = []
    for file in (ROOT / "functions/tollgate/cli/repository/files").glob("*.yml"):
        workflow = yaml.load(file.read_text().replace("@SOURCE@", "a/b"), yaml.BaseLoader)
        for job in workflow["jobs"].values():
            given = job["steps"][-1]["with"]
            assert given.keys() <= ACTION["inputs"].keys()
            named = job["strategy"]["matrix"]["run"] if "strategy" in job else [given["run"]]
            words += [(word, given.get("source", "")) for word in named]
    used = {"check", "plan", "publish", "refresh", "upgrade", "canary"}
    assert {word for word, _ in words} == used
    for word, source in words:
        taken = run_step("Refuse unusable inputs", tmp_path / "work", RUN=word, SOURCE=source)
        assert (taken.returncode, taken.stdout) == (0, "")


def test_c100_the_job_of_the_page_on_people_states_inputs_that_the_action_takes() -> None:
    page = (ROOT / "docs" / "people.md").read_text()
    (block,) = [it for it in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL) if "apply:" in it]
    job = yaml.load(block, yaml.BaseLoader)["apply"]
    checkout, step = job["steps"]
    used = (ROOT / ".github" / "workflows" / "routing-plan.yml").read_text()
    assert f"uses: {checkout['uses']} #" in used
    assert step["with"].keys() <= ACTION["inputs"].keys()
    assert step["with"]["run"] == "apply"


@pytest.mark.nightly
def test_c97_the_pinned_wheels_are_installed_by_their_hashes(tmp_path: Path) -> None:
    work, index = tmp_path / "work", tmp_path / "index"
    work.mkdir()
    cut(index, "1.2.3", {})
    pins = "".join(
        f"{wheel.name.split('-')[0].replace('_', '-')}==1.2.3"
        f" --hash=sha256:{sha256(wheel.read_bytes()).hexdigest()}\n"
        for wheel in index.iterdir()
    )
    (work / "requirements.txt").write_text(pins)
    offline = {"COMMAND": "", "PIP_NO_INDEX": "1", "PIP_FIND_LINKS": str(index)}
    path = f"{Path(sys.executable).parent}:/usr/bin:/bin"
    installed = run_step("Install", work, PATH=path, **offline)
    assert installed.returncode == 0, installed.stdout + installed.stderr
    assert (tmp_path / "output").read_text() == f"command={tmp_path}/tollgate/bin/tollgate\n"
    assert [*tmp_path.glob("tollgate/lib/python3*/site-packages/tollgate_llm-1.2.3.dist-info")]
    # A wheel with other bytes than the file states is not installed, in one sentence.
    (tmp_path / "output").unlink()
    shutil.rmtree(tmp_path / "tollgate")
    first = pins.partition("sha256:")[2][0]
    other = pins.replace(f"sha256:{first}", f"sha256:{'1' if first == '0' else '0'}", 1)
    (work / "requirements.txt").write_text(other)
    refused = run_step("Install", work, PATH=path, **offline)
    (error,) = [line for line in refused.stdout.splitlines() if line.startswith("::error::")]
    assert (refused.returncode, "a hash in it is not what the index has" in error) == (1, True)
    assert not (tmp_path / "output").exists()
