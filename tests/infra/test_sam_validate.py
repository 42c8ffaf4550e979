"""SAM's own check of the template, and the options that samconfig.toml gives `sam deploy`."""

import os
import subprocess
import tomllib
from pathlib import Path
from typing import Final

import pytest

from tests.infra.translation import ROOT, TEMPLATE, JsonObject

SAM: Final = ROOT / ".tools" / "sam" / "bin" / "sam"


def run_sam(*arguments: str, home: Path) -> subprocess.CompletedProcess[str]:
    """Run the pinned SAM with no account, no telemetry and a home of its own."""
    if not SAM.exists():
        pytest.fail("there is no .tools/sam: `make test` makes it")
    environment = {
        "AWS_DEFAULT_REGION": "us-east-1",
        "HOME": str(home),
        "PATH": os.environ["PATH"],
        "SAM_CLI_TELEMETRY": "0",
    }
    return subprocess.run(
        [SAM, *arguments],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.fixture(scope="module")
def samconfig() -> JsonObject:
    return tomllib.loads((ROOT / "samconfig.toml").read_text())


def test_sam_finds_nothing_wrong(tmp_path: Path) -> None:
    result = run_sam("validate", "--lint", "-t", "infra/template.yaml", home=tmp_path)
    assert result.returncode == 0, result.stdout + result.stderr
    assert "is a valid SAM Template" in result.stdout


@pytest.mark.nightly
def test_sam_finds_a_misspelt_property(tmp_path: Path) -> None:
    broken = tmp_path / "template.yaml"
    source = TEMPLATE.read_text().replace("KeySchema:", "KeySchemas:")
    broken.write_text(source.replace("../functions", str(ROOT / "functions")))
    result = run_sam("validate", "--lint", "-t", str(broken), home=tmp_path)
    assert result.returncode == 1
    assert "KeySchemas" in result.stdout + result.stderr


@pytest.mark.parametrize("stage", ["default", "prod"])
@pytest.mark.parametrize("command", ["validate", "build"])
def test_sam_is_told_where_the_template_is(stage: str, command: str, samconfig: JsonObject) -> None:
    template = samconfig[stage][command]["parameters"]["template_file"]
    assert ROOT / template == TEMPLATE


@pytest.mark.parametrize("stage", ["default", "prod"])
def test_deploy_takes_what_build_wrote(stage: str, samconfig: JsonObject) -> None:
    deploy = samconfig[stage]["deploy"]["parameters"]
    assert "template_file" not in deploy
    assert deploy["resolve_s3"] is True
    assert deploy["capabilities"] == "CAPABILITY_IAM"


def test_production_is_asked_about_and_is_another_stack(samconfig: JsonObject) -> None:
    stages = {stage: samconfig[stage]["deploy"]["parameters"] for stage in ("default", "prod")}
    assert stages["prod"]["confirm_changeset"] is True
    assert stages["default"]["stack_name"] != stages["prod"]["stack_name"]
