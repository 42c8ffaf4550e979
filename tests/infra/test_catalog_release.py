"""The workflow that releases the catalog: its rights, and its script with a stand-in for gh."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.infra.action import FOLDER as ACTION_FOLDER
from tests.infra.test_workflows import FOLDER
from tests.local_server import ROOT
from tollgate.cli.catalog.release import read_release

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


@pytest.mark.nightly
def test_c97_the_day_of_the_release_is_that_of_its_catalog(tmp_path: Path) -> None:
    (script,) = (it["run"] for it in JOBS["build"]["steps"] if it.get("name") == "Write")
    (tmp_path / ".venv").symlink_to(ROOT / ".venv")
    subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env={
            "GITHUB_OUTPUT": str(tmp_path / "output"),
            "PATH": os.environ["PATH"],
            "PYTHONPATH": str(ROOT / "functions"),
        },
        check=True,
    )
    released = read_release(tmp_path / "catalog.yaml")
    assert (tmp_path / "output").read_text() == f"day={released.day}\n"


GH_OF_RELEASES = """\
#!/bin/sh
printf '%s\\n' "$*" >> gh.txt
case "$2" in
list) echo catalog-2026-11-28;;
download) echo "version: 1" > "$RUNNER_TEMP/catalog.yaml";;
verify) exit "$ATTESTED";;
esac
"""


@pytest.mark.parametrize("attested", [True, False])
def test_c97_a_gateway_takes_only_a_release_that_its_source_attests(
    tmp_path: Path, *, attested: bool
) -> None:
    tools = {"gh": GH_OF_RELEASES, "python": "#!/bin/sh\n", "tollgate": '#!/bin/sh\necho "$@"\n'}
    for name, text in tools.items():
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "catalog.yaml").write_text("version: 1\n")
    temporary = tmp_path / "temporary"
    (temporary / "wheels").mkdir(parents=True)
    (temporary / "wheels" / "litellm-1.whl").touch()

    def script(name: str) -> int:
        return subprocess.run(
            ["bash", ACTION_FOLDER / name],
            cwd=tmp_path,
            env={
                "PATH": f"{tmp_path}:{os.environ['PATH']}",
                "RUNNER_TEMP": str(temporary),
                "TOLLGATE": str(tmp_path / "tollgate"),
                "SOURCE": "acme/tollgate",
                "ATTESTED": "0" if attested else "1",
                "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md"),
                "GITHUB_OUTPUT": str(tmp_path / "output"),
            },
            check=False,
        ).returncode

    assert (script("fetch.sh") == 0) is attested
    verified = (tmp_path / "gh.txt").read_text().splitlines()[-1]
    assert "--repo acme/tollgate --signer-workflow acme/tollgate/.github/workflows/" in verified
    if attested:
        assert script("refresh.sh") == 0
        taken = (temporary / "refresh.txt").read_text()
        assert taken.endswith(f"--release {temporary}/catalog.yaml\n")
