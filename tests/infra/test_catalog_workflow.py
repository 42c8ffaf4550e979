"""The workflow that keeps prices true: its permissions, and a run of its scripts."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.action import FOLDER as ACTION_FOLDER
from tests.infra.action import NAMED, STEPS, git, run_step
from tests.infra.test_workflows import FOLDER, GATEWAY, OFFICIAL
from tests.unit.cli.catalog.published import HEAD, block, entry, model, price_map

TEXT = (FOLDER / "catalog-refresh.yml").read_text()
WORKFLOW: dict[str, Any] = yaml.load(TEXT, Loader=yaml.BaseLoader)
(JOB,) = WORKFLOW["jobs"].values()
PROPOSED = {
    "REPOSITORY": "o/r",
    "BASE": "main",
    "BRANCH": "catalog-refresh",
    "TITLE": "routing: follow published prices",
}


def test_it_runs_each_night_with_the_rights_it_needs_and_no_more() -> None:
    assert set(WORKFLOW["on"]) == {"schedule", "workflow_dispatch"}
    assert WORKFLOW["permissions"] == {}
    assert JOB["permissions"] == {"contents": "write", "pull-requests": "write"}
    assert JOB["environment"] == "routing-plan"
    for step in JOB["steps"]:
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] == "false"


def test_only_official_actions_run_and_litellm_is_read_not_installed() -> None:
    used = {step["uses"].partition("@")[0] for step in JOB["steps"] if "uses" in step}
    assert used - {GATEWAY} < OFFICIAL
    fetched = (ACTION_FOLDER / "fetch.sh").read_text()
    assert " download " in fetched
    assert "--no-deps" in fetched
    assert "--only-binary=:all:" in fetched
    assert " install " not in fetched


def test_only_a_plan_has_the_key_and_only_the_last_step_may_write() -> None:
    written = [step["name"] for step in STEPS if "GH_TOKEN" in step.get("env", {})]
    # `Fetch` and `Upgrade` read releases and attestations with the token; a comment is no commit.
    assert written == ["Fetch", "Comment on a canary", "Upgrade", "Propose"]
    expressions = set(re.findall(r"\$\{\{ (.*?) \}\}", TEXT))
    assert expressions == {
        "secrets.TOLLGATE_KEY",
        "vars.TOLLGATE_KEY_VARIABLES",
        "vars.TOLLGATE_URL",
    }


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository whose price is published otherwise, with a remote and a wheel."""
    folder = tmp_path / "work"
    folder.mkdir()
    (tmp_path / "gitconfig").write_text(
        f'[url "{tmp_path / "remote.git"}"]\ninsteadOf = https://github.com/o/r.git\n'
    )
    (folder / "routing.yaml").write_text(HEAD + model("m", block("1.00", "2.00")))
    (tmp_path / "wheels").mkdir()
    price_map(tmp_path / "wheels", together_ai__m=entry(1, 3))
    git(tmp_path, "init --quiet --bare remote.git")
    git(folder, "init --quiet --initial-branch=main", "add --all", "commit --quiet -m begin")
    return folder


def run_all(folder: Path) -> None:
    for name in ("Refresh", "Plan the refresh", "Propose"):
        ended = run_step(name, folder, **PROPOSED)
        assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_price_that_changed_becomes_a_pull_request_with_its_plan(checkout: Path) -> None:
    run_all(checkout)
    home = checkout.parent
    assert (home / "output").read_text() == "differs=true\n"
    body = (home / "body.md").read_text()
    assert "~ acme/m @ together: input 1, output 3 (litellm 9.8.7 alone)" in body
    # The sums come before what a long list would push out of the first 5,000 bytes.
    assert body.index("1 endpoints compared") < body.index("~ acme/m")
    assert "<!-- tollgate-plan label=routing:price -->" in body
    assert "output 2.00 → 3.00 (+50.0 %)" in body
    assert "refs/heads/catalog-refresh" in git(checkout, "ls-remote ../remote.git")
    *_, created = (home / "gh.txt").read_text().splitlines()
    assert created.startswith("pr create --base main --head catalog-refresh")
    changed = git(checkout, "show --name-only --format= catalog-refresh").split()
    assert sorted(changed) == ["evidence.json", "routing.yaml"]


@pytest.mark.nightly
def test_a_pull_request_that_is_open_is_updated(checkout: Path) -> None:
    (checkout.parent / "open").write_text("7\n")
    run_all(checkout)
    *_, edited = (checkout.parent / "gh.txt").read_text().splitlines()
    assert edited.startswith("pr edit 7 ")


@pytest.mark.nightly
def test_what_is_true_already_opens_nothing(checkout: Path) -> None:
    run_all(checkout)
    (checkout.parent / "output").unlink()
    ended = run_step("Refresh", checkout)
    assert ended.returncode == 0, ended.stderr
    assert not (checkout.parent / "output").exists()
    assert NAMED["Plan the refresh"]["if"] == "steps.refresh.outputs.differs == 'true'"
    assert "steps.refresh.outputs.differs == 'true'" in NAMED["Propose"]["if"]
