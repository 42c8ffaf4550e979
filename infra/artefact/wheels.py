"""Installation of the functions' locked dependencies, which builds share."""

import hashlib
import shutil
import subprocess
import sys
from enum import StrEnum
from pathlib import Path
from typing import Final

from infra.artefact.bytecode import compile_all
from infra.artefact.interpreters import VERSION, NoInterpreter
from infra.artefact.site import Site

# Lambda's Amazon Linux 2023 has glibc 2.34, which also runs wheels for older versions.
_MANYLINUX: Final = ("manylinux_2_34", "manylinux_2_28", "manylinux_2_17", "manylinux2014")
_PIP: Final = ("-m", "pip", "--disable-pip-version-check")
# Only wheels with a hash in the lock are accepted, and no code from a source package is run.
_INSTALL: Final = (
    *("install", "-qq", "--no-compile", "--no-deps", "--require-hashes"),
    *("--only-binary", ":all:"),
)


class Target(StrEnum):
    """The target platform of an artefact."""

    LAMBDA = "lambda"
    # This machine, for tests.
    HOST = "host"


def install_wheels(lock: Path, kept: Path, target: Target, python: str | None) -> Site:
    """Install the wheels in a lock file below `kept`, unless an earlier build did.

    `python` is a command for Python 3.13: without it, wheels get no bytecode, and the target HOST
    raises NoInterpreter. Raises subprocess.CalledProcessError if pip fails.
    """
    made_from = f"{hashlib.sha256(lock.read_bytes()).hexdigest()} {target} {python}\n"
    folder = kept / target
    note = kept / f"{target}.made-from"
    if note.is_file() and note.read_text() == made_from:
        return Site(folder)
    note.unlink(missing_ok=True)
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(_pip(target, python, ("--target", str(folder), "-r", str(lock))), check=True)
    if python is not None:
        compile_all(python, folder, [folder])
    note.write_text(made_from)
    return Site(folder)


def _pip(target: Target, python: str | None, arguments: tuple[str, ...]) -> list[str]:
    if target is Target.LAMBDA:
        platforms = [
            argument for name in _MANYLINUX for argument in ("--platform", f"{name}_aarch64")
        ]
        platform = ("--implementation", "cp", "--python-version", VERSION, *platforms)
        return [sys.executable, *_PIP, *_INSTALL, *platform, *arguments]
    if python is None:
        raise NoInterpreter(f"only a Python {VERSION} can install for this machine")
    return [sys.executable, *_PIP, "--python", python, *_INSTALL, *arguments]
