"""The workflow that keeps prices true: its permissions, and a run of its scripts."""

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.test_workflows import FOLDER, OFFICIAL
from tests.local_server import ROOT, TOLLGATE
from tests.unit.cli.catalog.published import HEAD, block, entry, model, price_map

TEXT = (FOLDER / "catalog-refresh.yml").read_text()
WORKFLOW: dict[str, Any] = yaml.load(TEXT, Loader=yaml.BaseLoader)
(JOB,) = WORKFLOW["jobs"].values()
STEPS = {step["name"]: step for step in JOB["steps"] if "name" in step}
# Records what it is called with; one pull request is open if the file `open` is there.
GH = """\
#!/bin/sh
printf '%s\\n' "$*" >> "$HOME/gh.txt"
case "$1 $2" in "pr list") cat "$HOME/open" 2>/dev/null || true;; esac
"""


def test_it_runs_each_night_with_the_rights_it_needs_and_no_more() -> None:
    assert set(WORKFLOW["on"]) == {"schedule", "workflow_dispatch"}
    assert WORKFLOW["permissions"] == {}
    assert JOB["permissions"] == {"contents": "write", "pull-requests": "write"}
    assert JOB["environment"] == "routing-plan"
    for step in JOB["steps"]:
        assert "${{" not in step.get("run", "")
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] == "false"


def test_only_official_actions_run_and_litellm_is_read_not_installed() -> None:
    used = {step["uses"].partition("@")[0] for step in JOB["steps"] if "uses" in step}
    assert used < OFFICIAL
    fetched = STEPS["Fetch"]["run"]
    assert " download " in fetched
    assert "--no-deps" in fetched
    assert "--only-binary=:all:" in fetched
    assert "install" not in TEXT.replace("installed", "")


def test_only_the_plan_has_the_key_and_only_the_last_step_may_write() -> None:
    secret = {name for name, step in STEPS.items() if "TOLLGATE_KEY" in step.get("env", {})}
    assert secret == {"Plan"}
    assert [name for name, step in STEPS.items() if "GH_TOKEN" in step.get("env", {})] == [
        "Pull request"
    ]
    expressions = set(re.findall(r"\$\{\{ (.*?) \}\}", TEXT))
    assert expressions == {
        "github.event.repository.default_branch",
        "github.repository",
        "github.token",
        "secrets.TOLLGATE_KEY",
        "vars.TOLLGATE_KEY_VARIABLES",
        "vars.TOLLGATE_URL",
    }


def run(folder: Path, script: str) -> subprocess.CompletedProcess[str]:
    """A step as GitHub runs it."""
    home = folder.parent
    return subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=folder,
        env={
            "PATH": f"{home / 'bin'}:{TOLLGATE.parent}:/usr/bin:/bin",
            "PYTHONPATH": str(ROOT / "functions"),
            "GITHUB_STEP_SUMMARY": str(home / "summary.md"),
            "GITHUB_OUTPUT": str(home / "output"),
            "TOLLGATE_URL": "",
            "TOLLGATE_KEY": "",
            "REPOSITORY": "o/r",
            "BASE": "main",
            "GIT_CONFIG_GLOBAL": str(home / "gitconfig"),
            "HOME": str(home),
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A repository whose price is published otherwise, with a remote, a wheel and a `gh`."""
    remote, folder, tools = (tmp_path / name for name in ("remote.git", "work", "bin"))
    for each in (folder, tools):
        each.mkdir()
    (tools / "gh").write_text(GH)
    (tools / "gh").chmod(0o755)
    (tmp_path / "gitconfig").write_text(
        f'[url "{remote}"]\ninsteadOf = https://github.com/o/r.git\n'
    )
    (folder / "routing.yaml").write_text(HEAD + model("m", block("1.00", "2.00")))
    (folder / ".gitignore").write_text(".venv\nwheels\n*.md\nrefresh.txt\n")
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(TOLLGATE.parent)
    (folder / "wheels").mkdir()
    price_map(folder / "wheels", together_ai__m=entry(1, 3))
    who = "git -c user.name=t -c user.email=t@example.com"
    begun = run(
        folder,
        f"git init --quiet --bare {remote} && git init --quiet --initial-branch=main"
        f" && git add --all && {who} commit --quiet --message begin",
    )
    assert begun.returncode == 0, begun.stderr
    return folder


def all_steps(folder: Path) -> None:
    for name in ("Refresh", "Plan", "Pull request"):
        step = STEPS[name]
        ended = run(folder, step["run"])
        assert ended.returncode == 0, ended.stdout + ended.stderr


def test_a_price_that_changed_becomes_a_pull_request_with_its_plan(checkout: Path) -> None:
    all_steps(checkout)
    home = checkout.parent
    assert (home / "output").read_text() == "differs=true\n"
    body = (checkout / "body.md").read_text()
    assert "~ acme/m @ together: input 1, output 3 (litellm 9.8.7 alone)" in body
    # The sums come before what a long list would push out of the first 5,000 bytes.
    assert body.index("1 endpoints compared") < body.index("~ acme/m")
    assert "<!-- tollgate-plan label=routing:price -->" in body
    assert "output 2.00 → 3.00 (+50.0 %)" in body
    pushed = run(
        checkout, "git show --stat --format=%s FETCH_HEAD || true; git ls-remote ../remote.git"
    )
    assert "refs/heads/catalog-refresh" in pushed.stdout
    *_, created = (home / "gh.txt").read_text().splitlines()
    assert created.startswith("pr create --base main --head catalog-refresh")
    changed = run(checkout, "git show --name-only --format= catalog-refresh").stdout.split()
    assert sorted(changed) == ["infra/catalog/evidence.json", "routing.yaml"]


@pytest.mark.nightly
def test_a_pull_request_that_is_open_is_updated(checkout: Path) -> None:
    (checkout.parent / "open").write_text("7\n")
    all_steps(checkout)
    *_, edited = (checkout.parent / "gh.txt").read_text().splitlines()
    assert edited == "pr edit 7 --body-file body.md"


@pytest.mark.nightly
def test_what_is_true_already_opens_nothing(checkout: Path) -> None:
    all_steps(checkout)
    (checkout.parent / "output").unlink()
    ended = run(checkout, STEPS["Refresh"]["run"])
    assert ended.returncode == 0, ended.stderr
    assert not (checkout.parent / "output").exists()
    for name in ("Plan", "Pull request"):
        assert STEPS[name]["if"] == "steps.refresh.outputs.differs == 'true'"
