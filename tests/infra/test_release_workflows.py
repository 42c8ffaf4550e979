"""The workflows that release and audit: their rights, and what they run, up to the network."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.infra.test_package import VERSION
from tests.local_server import ROOT
from tollgate import DISTRIBUTION

FOLDER: Final = ROOT / ".github" / "workflows"
LOCKS: Final = sorted(
    [ROOT / "functions" / "requirements.txt", *(ROOT / "infra" / "environments").glob("*.txt")]
)
PIN: Final = re.compile(r"^([a-z0-9][a-z0-9._-]*)==(\S+)", re.MULTILINE)


def workflow(name: str) -> dict[str, Any]:
    """A workflow; the base loader, since `on` is a key here and no boolean."""
    loaded: dict[str, Any] = yaml.load((FOLDER / name).read_text(), Loader=yaml.BaseLoader)
    return loaded


RELEASE, AUDIT = workflow("release.yml"), workflow("audit.yml")
JOBS: Final = RELEASE["jobs"]
BUILD, DRAFT, PUBLISH = JOBS["build"], JOBS["release"], JOBS["publish"]
# These run the repository's code, and so have no rights.
OF_OUR_CODE: Final = ("build", "rebuild", "verify")
(LOOK_UP,) = AUDIT["jobs"].values()


def actions(job: dict[str, Any]) -> list[str]:
    return [it["uses"].partition("@")[0] for it in job["steps"] if "uses" in it]


def commands(job: dict[str, Any]) -> list[str]:
    return [it["run"] for it in job["steps"] if "run" in it]


def make(*words: str) -> subprocess.CompletedProcess[str]:
    if not (ROOT / ".tools" / "supply" / "stamp").exists():
        pytest.fail("there is no .tools/supply: `make test` makes it")
    return subprocess.run(
        ["make", "--no-print-directory", "-o", ".tools/supply/stamp", *words],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )


def test_c97_the_jobs_with_rights_run_nothing_of_the_repository() -> None:
    assert RELEASE["permissions"] == {}
    assert {name for name, job in JOBS.items() if "make" in str(commands(job))} == {*OF_OUR_CODE}
    for name in OF_OUR_CODE:
        assert JOBS[name]["permissions"] == {"contents": "read"}
        assert "secrets." not in str(JOBS[name])
        assert "github.token" not in str(JOBS[name])
    assert DRAFT["permissions"] == {
        "contents": "write",
        "id-token": "write",
        "attestations": "write",
    }
    assert (DRAFT["needs"], DRAFT["environment"]) == ("rebuild", "release")
    assert actions(DRAFT) == ["actions/download-artifact", "actions/attest-build-provenance"]
    assert [it.split()[:3] for it in commands(DRAFT)] == [["gh", "release", "create"]]
    assert JOBS["image"]["permissions"].keys() == {"packages", "id-token", "attestations"}
    assert actions(JOBS["image"]) == actions(DRAFT)


def test_c97_the_job_that_publishes_runs_one_locked_tool_and_no_action_of_others() -> None:
    assert PUBLISH["permissions"] == {"contents": "read", "id-token": "write"}
    assert (PUBLISH["needs"], PUBLISH["environment"]) == ("release", "pypi")
    assert actions(PUBLISH) == ["actions/checkout", "actions/download-artifact"]
    assert PUBLISH["steps"][0]["with"]["sparse-checkout"] == "infra/environments"
    (upload,) = commands(PUBLISH)
    assert "--require-hashes --only-binary :all: --requirement infra/environments/publish.txt" in (
        " ".join(upload.replace("\\\n", "").split())
    )
    lock = (ROOT / "infra" / "environments" / "publish.txt").read_text()
    assert [name for name, _ in PIN.findall(lock)] == ["uv"]


def test_what_is_released_is_attested_and_only_for_a_tag() -> None:
    assert RELEASE["on"] == {"push": {"tags": ["v*"]}}
    (attested,) = (it["with"] for it in DRAFT["steps"] if "attest-build" in it.get("uses", ""))
    assert attested == {"subject-path": "dist/*"}
    assert " dist/* " in commands(DRAFT)[0]


@pytest.mark.parametrize(("name", "other"), [("rebuild", "built"), ("verify", "published")])
def test_c97_wheels_with_other_bytes_fail_the_release(
    tmp_path: Path, name: str, other: str
) -> None:
    (script,) = commands(JOBS[name])
    commands_of = {
        "make": "#!/bin/sh\nmkdir -p dist && echo ours > dist/a.whl && echo ours > dist/b.whl\n",
        "python": "#!/bin/sh\nexit 0\n",
    }
    for command, content in commands_of.items():
        (tmp_path / command).write_text(content)
        (tmp_path / command).chmod(0o755)
    (tmp_path / ".venv").mkdir()
    (tmp_path / ".venv" / "bin").symlink_to(tmp_path)

    def compare(second: str) -> int:
        folder = tmp_path / second
        folder.mkdir()
        if other == "built":
            (folder / other).mkdir()
        for wheel, content in (("a.whl", "ours"), ("b.whl", second)):
            (tmp_path / wheel).write_text(f"{content}\n")
        copied = f"cp ../*.whl {other}/; "
        run = (
            copied + script
            if other == "built"
            else script.replace("mkdir published", f"mkdir published; {copied}")
        )
        (folder / ".venv").symlink_to(tmp_path / ".venv")
        ended = subprocess.run(
            ["bash", "-e", "-c", run],
            cwd=folder,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "TAG": "v1.0.0"},
            capture_output=True,
            check=False,
        )
        return ended.returncode

    assert compare("ours") == 0
    assert compare("theirs") == 1


PRINTS: Final = """\
#!/bin/sh
echo "${0##*/} $*" >> "$CALLED"
case "$1 $2" in
"login "*) cat >> "$CALLED";;
"image inspect") echo "ghcr.io/acme/tollgate@sha256:abc";;
"-m venv") mkdir -p "$3/bin" && cp "$0" "$3/bin/python" && cp "$0" "$3/bin/uv";;
esac
"""
RIGHTFUL: Final = {
    "release": """\
gh release create v1.2.0 dist/a.whl dist/b.zip --draft --generate-notes --verify-tag
""",
    "image": """\
docker login ghcr.io --username me --password-stdin
secretdocker load --input image.tar
docker tag tollgate ghcr.io/acme/tollgate:1.2.0
docker push ghcr.io/acme/tollgate:1.2.0
docker image inspect --format {{index .RepoDigests 0}} ghcr.io/acme/tollgate:1.2.0
name=ghcr.io/acme/tollgate
digest=sha256:abc
""",
    "publish": """\
python3 -m venv TEMP/publish
python -m pip install --quiet --no-deps --require-hashes --only-binary :all: \
--requirement infra/environments/publish.txt
uv publish --trusted-publishing always dist/a.whl
""",
}


@pytest.mark.parametrize("name", RIGHTFUL)
def test_c97_the_script_of_a_job_with_rights_calls_only_these_tools(
    tmp_path: Path, name: str
) -> None:
    (step,) = (each for each in JOBS[name]["steps"] if "run" in each)
    for tool in ("docker", "gh", "python3"):
        (tmp_path / tool).write_text(PRINTS)
        (tmp_path / tool).chmod(0o755)
    (tmp_path / "dist").mkdir()
    for file in ("a.whl", "b.zip"):
        (tmp_path / "dist" / file).touch()
    known = {"TOKEN": "secret", "ACTOR": "me", "REPOSITORY": "Acme/Tollgate", "TAG": "v1.2.0"}
    stated = {key: known.get(key, "") for key in step.get("env", {})}
    called, output = tmp_path / "called", tmp_path / "output"
    output.touch()
    ended = subprocess.run(
        ["bash", "-e", "-c", step["run"]],
        cwd=tmp_path,
        env=stated
        | {
            "CALLED": str(called),
            "GITHUB_OUTPUT": str(output),
            "PATH": f"{tmp_path}:/usr/bin:/bin",
            "RUNNER_TEMP": str(tmp_path),
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert (called.read_text() + output.read_text()).replace(str(tmp_path), "TEMP") == (
        RIGHTFUL[name]
    )


def test_the_image_is_built_and_saved_for_the_job_that_pushes_it(tmp_path: Path) -> None:
    (tmp_path / "docker").write_text(PRINTS)
    (tmp_path / "docker").chmod(0o755)
    script = commands(BUILD)[1]
    ended = subprocess.run(
        ["bash", "-e", "-c", script],
        cwd=tmp_path,
        env={"CALLED": str(tmp_path / "called"), "PATH": f"{tmp_path}:/usr/bin:/bin"},
        check=False,
    )
    assert ended.returncode == 0
    assert (tmp_path / "called").read_text() == (
        "docker build --tag tollgate .\ndocker save --output image.tar tollgate\n"
    )


# The real `make`, whose wheels go into the job's folder.
MAKE: Final = """\
#!/bin/sh
exec /usr/bin/make --no-print-directory -C "$CHECKOUT" -o .venv/run.stamp "$@" dist="$PWD/dist"
"""


@pytest.mark.nightly
def test_c97_the_wheels_are_built_twice_and_compared_before_and_after_they_are_published(
    tmp_path: Path,
) -> None:
    index, tools = tmp_path / "built", tmp_path / "bin"
    tools.mkdir()
    (tools / "make").write_text(MAKE)
    (tools / "make").chmod(0o755)
    (tools / "python").symlink_to(sys.executable)
    for linked in (".venv", "infra"):
        (tmp_path / linked).symlink_to(ROOT / linked)

    def run(script: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            ["bash", "-e", "-c", script],
            cwd=tmp_path,
            env={
                "CHECKOUT": str(ROOT),
                "PATH": f"{tools}:{Path(sys.executable).parent}:/usr/bin:/bin",
                "PIP_FIND_LINKS": str(index),
                "PIP_NO_INDEX": "1",
                "PYTHONPATH": f"{ROOT / 'functions'}:{ROOT}",
                "TAG": f"v{VERSION}",
            },
            capture_output=True,
            text=True,
            check=False,
        )

    made = run("make wheels")
    assert made.returncode == 0, made.stderr
    (tmp_path / "dist").rename(index)
    for name in ("rebuild", "verify"):
        (script,) = commands(JOBS[name])
        compared = run(script)
        assert compared.returncode == 0, compared.stdout + compared.stderr
    published = sorted(file.name for file in (tmp_path / "published").iterdir())
    assert published == sorted(file.name for file in index.iterdir())
    # A file that was added to the published wheel is named, though the index serves it.
    shutil.rmtree(tmp_path / "published")
    with zipfile.ZipFile(index / published[0], "a") as archive:
        archive.writestr("tollgate_start.pth", "import os")
    poisoned = run(commands(JOBS["verify"])[0])
    assert poisoned.returncode == 1
    assert "tollgate_start.pth would be installed outside the package" in poisoned.stderr


def test_the_audit_only_reads_and_runs_each_week() -> None:
    assert AUDIT["permissions"] == {"contents": "read"}
    assert "permissions" not in LOOK_UP
    assert commands(LOOK_UP) == ["make audit"]
    assert len(AUDIT["on"]["schedule"]) == 1
    locks = {str(it.relative_to(ROOT)) for it in LOCKS}
    globs = AUDIT["on"]["push"]["paths"]
    assert {name for name in locks if any(Path(name).match(glob) for glob in globs)} == locks


@pytest.mark.parametrize("job", [*JOBS.values(), LOOK_UP], ids=[*JOBS, "audit"])
def test_no_job_keeps_credentials_or_puts_words_of_others_into_a_command(
    job: dict[str, Any],
) -> None:
    assert "timeout-minutes" in job
    for step in job["steps"]:
        assert "${{" not in step.get("run", "")
        assert step.get("uses", "actions/").startswith("actions/")
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"]["persist-credentials"] == "false"


@pytest.mark.nightly
def test_the_bill_of_materials_lists_the_lock_with_its_hashes(tmp_path: Path) -> None:
    made = make("sbom", f"dist={tmp_path}")
    assert made.returncode == 0, made.stderr
    for name, lock in (
        ("functions", ROOT / "functions" / "requirements.txt"),
        ("command", ROOT / "infra" / "environments" / "run.txt"),
    ):
        bill = json.loads((tmp_path / f"tollgate-{name}.cdx.json").read_text())
        text = lock.read_text()
        listed = {(it["name"], it["version"]) for it in bill["components"]}
        assert listed == set(PIN.findall(text))
        hashes = {
            digest["content"]
            for it in bill["components"]
            for reference in it["externalReferences"]
            for digest in reference["hashes"]
        }
        assert hashes == set(re.findall(r"--hash=sha256:([0-9a-f]{64})", text))
        assert bill["metadata"]["component"]["name"] == DISTRIBUTION
        # The same lock gives the same bytes, so that an attestation can be checked by a rebuild.
        assert "serialNumber" not in bill
        assert "timestamp" not in bill["metadata"]


@pytest.mark.nightly
def test_every_lock_is_read_by_the_audit() -> None:
    read = make("audit", "AUDIT_ARGS=--dry-run")
    assert read.returncode == 0, read.stdout + read.stderr
    audited = re.findall(r"^tollgate: auditing (\S+)$", read.stdout, re.MULTILINE)
    assert sorted(audited) == sorted(str(it.relative_to(ROOT)) for it in LOCKS)
    assert read.stderr.count("would have audited") == len(LOCKS)
