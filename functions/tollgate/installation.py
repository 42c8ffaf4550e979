"""Places of the product's files, in a checkout and in an installed wheel, and of its tools.

The wheel has these files in the folder `parts` of this package, with their paths in the repository.
"""

import fcntl
import hashlib
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal

import click

from tollgate import DISTRIBUTION
from tollgate.settings import environment_variable

_PACKAGE: Final = Path(__file__).resolve().parent
_INSTALLED: Final = _PACKAGE / "parts"

PartName = Literal[
    "artefact",
    "catalog",
    "environments",
    "handlers",
    "lock",
    "routing",
    "schema",
    "simulator",
    "template",
]
PARTS: Final[dict[PartName, str]] = {
    "artefact": "infra/artefact",
    "catalog": "infra/catalog",
    "environments": "infra/environments",
    "handlers": "functions",
    "lock": "functions/requirements.txt",
    "routing": "routing.yaml",
    "schema": "infra/schema",
    "simulator": "infra/simulator.yaml",
    "template": "infra/template.yaml",
}


def is_checkout() -> bool:
    """Return whether this package is in a checkout, in which `make` installs the tools."""
    return not _INSTALLED.is_dir()


def root() -> Path:
    """Return the folder that contains `infra` and `functions`: the checkout or the wheel's parts.

    Python finds the package `infra.artefact` with this folder on its path.
    """
    return _PACKAGE.parents[1] if is_checkout() else _INSTALLED


def part(name: PartName) -> Path:
    """Return the path of a part of the product.

    `handlers` is the folder of the functions' entry files; the package `tollgate` is in it only in
    a checkout.
    """
    return root() / PARTS[name]


def environment(name: str) -> Path:
    """Return a tool's environment, made from its lock if it is missing, such as `ministack`.

    An environment is in `.tools` of a checkout, and otherwise in the user's cache, where each
    version and lock has another folder. Raises ClickException if the environment cannot be made.
    """
    lock = f"{PARTS['environments']}/{name}.txt"
    # Relative, as in the Makefile, because the scripts note the paths that they are given.
    folder = Path(".tools", name) if is_checkout() else _cached(name, root() / lock)
    made = root() / folder
    stamp = made / "stamp"
    if stamp.exists():
        return made
    made.parent.mkdir(parents=True, exist_ok=True)
    # A second process waits here until the first has made the environment.
    with made.with_name(f"{name}.lock").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not stamp.exists():
            click.echo(f"Installing {name} in {made}, once", err=True)
            _run("create", folder, lock)
            _run(
                "install",
                folder,
                "--require-hashes",
                "--only-binary",
                ":all:",
                "--requirement",
                lock,
            )
            stamp.touch()
    return made


def _cached(name: str, lock: Path) -> Path:
    digest = hashlib.sha256(lock.read_bytes()).hexdigest()
    cache = environment_variable("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache, "tollgate", f"{name}-{version(DISTRIBUTION)}-{digest[:12]}")


def _run(script: str, *arguments: str | Path) -> None:
    """Run one of the scripts with which `make` creates environments."""
    # In a checkout, `make` uses the same environments with their own pip.
    names = ("PYTHON",) if is_checkout() else ("PYTHON", "PIP_OF")
    variables = (f"{name}={sys.executable}" for name in names)
    ended = subprocess.run(  # noqa: S603 - our own scripts, no caller's words
        ["env", *variables, part("environments") / script, *arguments],  # noqa: S607
        cwd=root(),
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        # The last line of a script that fails says what to do.
        reason = ended.stderr.strip().rpartition("\n")[2]
        raise click.ClickException(reason.removeprefix("tollgate: "))
