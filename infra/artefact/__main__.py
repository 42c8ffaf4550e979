"""Command line of the build: `python -m infra.artefact FUNCTION FOLDER`."""

import argparse
import subprocess
import sys
from pathlib import Path

from infra.artefact.build import FUNCTIONS, build, compile_ours
from infra.artefact.interpreters import VERSION, NoInterpreter, find_lambda_python
from infra.artefact.wheels import Target, install_wheels
from tollgate.routing.file.problems import InvalidRouting
from tollgate.sign_in.configuration import InvalidSignIn

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "functions"
KEPT = ROOT / ".aws-sam" / "wheels"


def main() -> None:
    """Build a function, or exit with the reason why it cannot be built."""
    parser = argparse.ArgumentParser(prog="python -m infra.artefact", description=__doc__)
    parser.add_argument("function", choices=FUNCTIONS)
    parser.add_argument("output", type=Path)
    parser.add_argument("--target", type=Target, choices=Target, default=Target.LAMBDA)
    parser.add_argument("--python", help=f"command of a Python {VERSION} on this machine")
    parser.add_argument("--routing", type=Path, default=ROOT / "routing.yaml")
    options = parser.parse_args()
    try:
        _build(options)
    except (NoInterpreter, InvalidRouting, InvalidSignIn) as error:
        sys.exit(f"tollgate: {error}")
    except subprocess.CalledProcessError as error:
        sys.exit(f"tollgate: {error.cmd[0]} failed with status {error.returncode}; see above")


def _build(options: argparse.Namespace) -> None:
    python = find_lambda_python(options.python)
    KEPT.mkdir(parents=True, exist_ok=True)
    site = install_wheels(SOURCE / "requirements.txt", KEPT, options.target, python)
    options.output.mkdir(parents=True, exist_ok=True)
    build(
        FUNCTIONS[options.function],
        source=SOURCE,
        site=site,
        routing=options.routing,
        output=options.output,
    )
    if python is not None:
        compile_ours(python, SOURCE, options.output)


if __name__ == "__main__":
    main()
