"""Each test is run by `make test` or `make test-nightly`, and none by neither.

Keeps no contract statement.
"""

import re
import shlex
import subprocess
import sys
from functools import cache
from itertools import pairwise

import pytest
import yaml

from tests.local_server import ROOT

MARKERS = r"-m '(.*?)'"


@cache
def runs_of(target: str) -> tuple[tuple[str, ...], ...]:
    """Return the arguments of each run of pytest that a target of the Makefile makes."""
    printed = subprocess.run(
        ["make", "--dry-run", "--always-make", "--no-print-directory", target],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    return tuple(
        tuple(shlex.split(line.partition(" -m pytest ")[2]))
        for line in printed.splitlines()
        if " -m pytest " in line
    )


def covers(run: tuple[str, ...], file: str) -> bool:
    """Tell whether a run has a file among its folders, and does not leave it out."""
    left_out = {value for flag, value in pairwise(run) if flag == "--ignore"}
    named = {each for each in run if each.startswith("tests/")} - left_out
    return is_below(file, named) and not is_below(file, left_out)


def is_below(file: str, folders: set[str]) -> bool:
    return any(file == folder or file.startswith(f"{folder}/") for folder in folders)


@pytest.mark.parametrize("target", ["test", "test-nightly"])
def test_a_target_has_each_file_of_tests_once(target: str) -> None:
    runs = runs_of(target)
    assert runs
    files = {str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")}
    assert len(files) > 300
    times = {file: sum(covers(run, file) for run in runs) for file in files}
    assert {file: number for file, number in times.items() if number != 1} == {}


def test_what_one_target_leaves_out_the_other_runs() -> None:
    configured = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert re.findall(MARKERS, configured) == ["not nightly"]
    assert all("-m" not in run for run in runs_of("test"))
    for run in runs_of("test-nightly"):
        assert run[run.index("-m") + 1].split(" or ")[0] == "nightly"


@pytest.mark.nightly
def test_a_file_stays_in_one_process() -> None:
    """What a file starts is started once: pytest-dev/pytest-xdist#1386 spread it without a word."""
    flags = ("-p", "xdist.plugin", "--numprocesses", "2", "--dist", "loadgroup", "-v")
    assert set(flags[:2] + flags[4:6]) <= {*runs_of("test")[0]}
    shown = subprocess.run(
        [sys.executable, "-m", "pytest", *flags, "tests/unit/test_settings.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    workers = re.findall(r"^\[(gw\d)\].* PASSED ", shown, re.M)
    assert len(workers) > 5
    assert len({*workers}) == 1


def test_a_workflow_runs_each_target() -> None:
    for workflow, command in (("ci.yml", "make test"), ("nightly.yml", "make test-nightly")):
        text = (ROOT / ".github" / "workflows" / workflow).read_text(encoding="utf-8")
        content = yaml.load(text, Loader=yaml.BaseLoader)
        (job,) = content["jobs"].values()
        assert [step["run"] for step in job["steps"] if "run" in step] == [command]
        assert content["permissions"] == {"contents": "read"}
        actions = [step["uses"] for step in job["steps"] if "uses" in step]
        assert all(re.fullmatch(r"[a-z/-]+@[0-9a-f]{40}", name) for name in actions)
    assert (ROOT / ".ci" / "run").read_text(encoding="utf-8").splitlines()[-1] == "make test"
