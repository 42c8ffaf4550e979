"""The workflows that release and audit: their rights, and what they run, up to the network."""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.local_server import ROOT

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
BUILD, PUBLISH = RELEASE["jobs"]["build"], RELEASE["jobs"]["release"]
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


def test_the_job_with_rights_runs_nothing_of_the_repository() -> None:
    assert RELEASE["permissions"] == {}
    assert BUILD["permissions"] == {"contents": "read"}
    assert commands(BUILD) == ["make dist"]
    assert "secrets." not in str(BUILD)
    assert PUBLISH["permissions"] == {
        "contents": "write",
        "id-token": "write",
        "attestations": "write",
    }
    assert (PUBLISH["needs"], PUBLISH["environment"]) == ("build", "release")
    assert actions(PUBLISH) == ["actions/download-artifact", "actions/attest-build-provenance"]
    assert [it.split()[:3] for it in commands(PUBLISH)] == [["gh", "release", "create"]]


def test_what_is_released_is_attested_and_only_for_a_tag() -> None:
    assert RELEASE["on"] == {"push": {"tags": ["v*"]}}
    (attested,) = (it["with"] for it in PUBLISH["steps"] if "attest-build" in it.get("uses", ""))
    assert attested == {"subject-path": "dist/*"}
    assert " dist/* " in commands(PUBLISH)[0]


def test_the_audit_only_reads_and_runs_each_week() -> None:
    assert AUDIT["permissions"] == {"contents": "read"}
    assert "permissions" not in LOOK_UP
    assert commands(LOOK_UP) == ["make audit"]
    assert len(AUDIT["on"]["schedule"]) == 1
    locks = {str(it.relative_to(ROOT)) for it in LOCKS}
    globs = AUDIT["on"]["push"]["paths"]
    assert {name for name in locks if any(Path(name).match(glob) for glob in globs)} == locks


@pytest.mark.parametrize("job", [BUILD, PUBLISH, LOOK_UP], ids=["build", "release", "audit"])
def test_no_job_keeps_credentials_or_puts_words_of_others_into_a_command(
    job: dict[str, Any],
) -> None:
    assert "timeout-minutes" in job
    for step in job["steps"]:
        assert "${{" not in step.get("run", "")
        assert step.get("uses", "actions/").startswith("actions/")
        if step.get("uses", "").startswith("actions/checkout@"):
            assert step["with"] == {"persist-credentials": "false"}


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
        assert bill["metadata"]["component"]["name"] == "tollgate"
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
