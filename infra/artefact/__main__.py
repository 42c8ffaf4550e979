"""The command line of the build."""

import argparse
import subprocess
import sys
from pathlib import Path

from infra.artefact.build import FUNCTIONS, build, compile_ours
from infra.artefact.interpreters import VERSION, NoInterpreter, lambda_python
from infra.artefact.wheels import Target, installed
from tollgate.routing.file.problems import InvalidRouting

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "functions"
KEPT = ROOT / ".aws-sam" / "wheels"


def main() -> None:
    """Build one function, or say in a line why not."""
    parser = argparse.ArgumentParser(prog="python -m infra.artefact", description=__doc__)
    parser.add_argument("function", choices=FUNCTIONS)
    parser.add_argument("output", type=Path)
    parser.add_argument("--target", type=Target, choices=Target, default=Target.LAMBDA)
    parser.add_argument("--python", help=f"a Python {VERSION} that runs here")
    parser.add_argument("--routing", type=Path, default=ROOT / "routing.yaml")
    asked = parser.parse_args()
    try:
        _build(asked)
    except (NoInterpreter, InvalidRouting) as error:
        sys.exit(f"tollgate: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"tollgate: {error.cmd[0]} failed with status {error.returncode}; see above")


def _build(asked: argparse.Namespace) -> None:
    python = lambda_python(asked.python)
    KEPT.mkdir(parents=True, exist_ok=True)
    site = installed(SOURCE / "requirements.txt", KEPT, asked.target, python)
    asked.output.mkdir(parents=True, exist_ok=True)
    build(
        FUNCTIONS[asked.function],
        source=SOURCE,
        site=site,
        routing=asked.routing,
        output=asked.output,
    )
    if python is not None:
        compile_ours(python, SOURCE, asked.output)


if __name__ == "__main__":
    main()
