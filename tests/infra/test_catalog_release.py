"""The workflow that releases the catalog: its rights, and its script with a stand-in for gh."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.test_workflows import FOLDER

JOBS: dict[str, Any] = yaml.load(
    (FOLDER / "catalog-release.yml").read_text(), Loader=yaml.BaseLoader
)["jobs"]
GH = '#!/bin/sh\nprintf "%s\\n" "$*" >> gh.txt\ntest "$2" != view || test -f "$3"\n'


def test_the_job_with_rights_runs_no_code_of_the_repository() -> None:
    assert JOBS["build"]["permissions"] == {"contents": "read"}
    used = [step["uses"].partition("@")[0] for step in JOBS["release"]["steps"] if "uses" in step]
    assert used == ["actions/download-artifact", "actions/attest-build-provenance"]
    assert all("${{" not in step.get("run", "") for job in JOBS.values() for step in job["steps"])


@pytest.mark.parametrize("exists", [False, True])
def test_c97_a_day_is_one_release(tmp_path: Path, *, exists: bool) -> None:
    (tmp_path / "gh").write_text(GH)
    (tmp_path / "gh").chmod(0o755)
    (tmp_path / "catalog.yaml").write_text("version: 1\n")
    if exists:
        (tmp_path / "catalog-2026-11-27").touch()
    path = f"{tmp_path}:{os.environ['PATH']}"
    subprocess.run(
        ["bash", "-e", "-c", JOBS["release"]["steps"][-1]["run"]],
        cwd=tmp_path,
        env={"PATH": path, "TAG": "catalog-2026-11-27", "COMMIT": "abc"},
        check=True,
    )
    view, change = (tmp_path / "gh.txt").read_text().splitlines()
    assert view == "release view catalog-2026-11-27"
    assert change.startswith(f"release {'upload' if exists else 'create'} catalog-2026-11-27 ")
