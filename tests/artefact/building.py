"""`sam build`, as `make build` calls it."""

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

from infra.artefact.interpreters import NoInterpreter, find_lambda_python
from infra.artefact.wheels import Target

ROOT: Final = Path(__file__).parents[2]
SAM: Final = ROOT / ".tools" / "sam" / "bin" / "sam"


def python_3_13() -> str | None:
    """The interpreter that the build uses, PYTHON313 if it is set."""
    try:
        return find_lambda_python(os.environ.get("PYTHON313"))
    except NoInterpreter as error:
        pytest.fail(str(error))


def sam_build(folder: Path, target: Target) -> Path:
    """Build every function into a folder of its own; the folder of them all."""
    if not SAM.exists():
        pytest.fail("there is no .tools/sam: `make test` makes it")
    kept = {it: os.environ[it] for it in os.environ if it.startswith(("PIP_", "SSL_", "HTTP"))}
    environment = kept | {
        "AWS_DEFAULT_REGION": "us-east-1",
        "HOME": str(folder),
        "PATH": os.environ["PATH"],
        "PYTHON313": python_3_13() or "",
        "SAM_CLI_TELEMETRY": "0",
        "TARGET": target,
    }
    output = folder / "build"
    result = subprocess.run(
        [SAM, "build", "--build-dir", output],
        cwd=ROOT,
        env=environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        # Two minutes, but on a machine that has much else to do.
        timeout=900,
        check=False,
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return output


def install_lambda_client(folder: Path, python: str) -> Path:
    """Lambda's own runtime client for that interpreter, as the development lock pins it."""
    lock = (ROOT / "infra" / "environments" / "dev.txt").read_text()
    entries = re.split(r"\n(?=\S)", lock)
    names = ("awslambdaric==", "simplejson==", "snapshot-restore-py==")
    wanted = folder / "requirements.txt"
    wanted.write_text("\n".join(it for it in entries if it.startswith(names)) + "\n")
    installed = folder / "runtime"
    subprocess.run(
        [
            *(sys.executable, "-m", "pip", "--disable-pip-version-check", "--python", python),
            *("install", "-qq", "--no-deps", "--require-hashes", "--only-binary", ":all:"),
            *("--target", str(installed), "-r", str(wanted)),
        ],
        check=True,
    )
    return installed
