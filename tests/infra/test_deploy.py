"""infra/deploy with a stand-in for SAM: the commands that it runs, the next steps that it prints.

Keeps C54.
"""

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.infra.translation import ROOT
from tollgate.web.key_shapes import NewKeyBody
from tollgate.web.routes.credits import GrantBody

STAND_IN = '#!/bin/sh\necho "$@" >>"{seen}"\nexit {status}\n'


def deploy(
    folder: Path, stage: str, *, sam_status: int = 0, publish_status: int = 0
) -> tuple[list[str], subprocess.CompletedProcess[str]]:
    """The arguments of SAM and of the command line, and the script's own result.

    Nobody sits at the terminal.
    """
    seen = folder / "seen"
    for name, status in {"sam": sam_status, "tollgate": publish_status}.items():
        stand_in = folder / name
        stand_in.write_text(STAND_IN.format(seen=seen, status=status))
        stand_in.chmod(0o755)
    result = subprocess.run(
        [ROOT / "infra" / "deploy", stage],
        env={**os.environ, "SAM": str(folder / "sam"), "TOLLGATE": str(folder / "tollgate")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    return seen.read_text().splitlines(), result


@pytest.mark.parametrize(("stage", "stack"), [("default", "tollgate"), ("prod", "tollgate-prod")])
def test_c54_a_stage_is_deployed_then_published_and_nobody_is_asked_without_a_terminal(
    tmp_path: Path, stage: str, stack: str
) -> None:
    called, result = deploy(tmp_path, stage)
    assert called == [f"deploy --config-env {stage}", f"publish --stack {stack}"]
    assert f"first-key --stack {stack}\n" in result.stdout
    assert f"doctor --stack {stack}\n" in result.stdout


def test_c54_a_deploy_that_fails_publishes_nothing(tmp_path: Path) -> None:
    called, result = deploy(tmp_path, "default", sam_status=1)
    assert called == ["deploy --config-env default"]
    assert result.returncode == 1
    assert "Next" not in result.stdout


def test_c54_a_deploy_that_cannot_publish_fails(tmp_path: Path) -> None:
    _, result = deploy(tmp_path, "default", publish_status=1)
    assert result.returncode == 1
    assert "Next" not in result.stdout


def test_the_region_of_the_aws_command_line_is_sams_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AWS_REGION", "eu-central-1")
    monkeypatch.delenv("AWS_DEFAULT_REGION", raising=False)
    monkeypatch.setitem(globals(), "STAND_IN", STAND_IN.replace("$@", "$AWS_DEFAULT_REGION"))
    called, _ = deploy(tmp_path, "default")
    assert called == ["eu-central-1", "eu-central-1"]


def test_what_is_to_be_pasted_is_what_the_api_takes(tmp_path: Path) -> None:
    _, result = deploy(tmp_path, "default")
    bodies = re.findall(r"-d '(\{.*\})'", result.stdout)
    NewKeyBody.model_validate_json(bodies[0])
    GrantBody.model_validate_json(bodies[1])
    assert '"stream": true' in bodies[2]


def test_the_command_line_knows_the_commands_that_it_names(tmp_path: Path) -> None:
    _, result = deploy(tmp_path, "default")
    for command in re.findall(r"\.venv/bin/tollgate ([\w-]+)", result.stdout):
        asked = [
            ROOT / ".venv" / "bin" / "python",
            "-c",
            "from tollgate.cli.main import main; main()",
        ]
        assert (
            subprocess.run(
                [*asked, command, "--help"],
                env={**os.environ, "PYTHONPATH": str(ROOT / "functions")},
                capture_output=True,
                check=False,
            ).returncode
            == 0
        )
