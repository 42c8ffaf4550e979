"""Search for Lambda's Python version on this machine, which must compile the bytecode."""

import argparse
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

VERSION: Final = "3.13"

_PROBE: Final = "import sys; print('%d.%d' % sys.version_info[:2])"


class NoInterpreter(Exception):
    """Raised for an interpreter that does not run or has another version."""


def find_lambda_python(named: str | None) -> str | None:
    """Return a command that runs Python 3.13 on this machine, or None.

    Raises NoInterpreter if `named` is given but does not run Python 3.13.
    """
    if named:
        if _version(named) != VERSION:
            raise NoInterpreter(f"{named} does not run as Python {VERSION}")
        return named
    # A command on PATH may not run, because pyenv also puts shims for unselected versions there. A
    # version that pyenv has installed but not selected can be run by its path.
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    pyenv = sorted(map(str, versions.glob(f"{VERSION}.*/bin/python{VERSION}")))
    return next(
        (command for command in (f"python{VERSION}", *pyenv) if _version(command) == VERSION), None
    )


def _version(command: str) -> str | None:
    try:
        answer = subprocess.run(
            [command, "-c", _PROBE], capture_output=True, text=True, check=True, timeout=30
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()


def main() -> None:
    """Print a warning if artefacts will have no bytecode; SAM's build would hide the warning."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--python", help=f"command of a Python {VERSION} on this machine")
    try:
        found = find_lambda_python(parser.parse_args().python)
    except NoInterpreter as error:
        sys.exit(f"tollgate: {error}")
    if found is None:
        print(
            f"tollgate: no Python {VERSION} runs here, so the functions are built without "
            "bytecode and a cold start takes about twice as long. Name one: make "
            f"PYTHON313=/path/to/python{VERSION} build",
            file=sys.stderr,
        )


if __name__ == "__main__":
    main()
