"""The requirements of a gateway's repository: this version and all that it needs, with hashes."""

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from importlib.util import find_spec
from shutil import which
from tempfile import NamedTemporaryFile
from typing import Final

from tollgate import DISTRIBUTION
from tollgate.installation import part

# The lock of what the command and the local server need, made for every platform.
_LOCK: Final = "run.txt"
# The first adds the libraries of the server to the second, which has the code.
_DISTRIBUTIONS: Final = ("tollgate-llm", DISTRIBUTION)


class NoHashes(Exception):
    """Raised if the hashes of a version cannot be found; the message gives the reason."""


def find_hashes(stated: str) -> Mapping[str, Sequence[str]]:
    """Return the SHA-256 of each file of a version, by requirement; raise NoHashes without them.

    pip or uv asks the package index that is configured on this machine, and checks what it answers.
    """
    wanted = [f"{name}=={stated}" for name in _DISTRIBUTIONS]
    if find_spec("pip") is not None:
        found = _hashes_by_pip(wanted)
    elif which("uv") is not None:
        found = _hashes_by_uv(wanted)
    else:
        raise NoHashes("neither pip nor uv is installed here, which find the hashes of a version")
    missing = [each for each in wanted if not found.get(each)]
    if missing:
        raise NoHashes(f"the package index states no hash for {', '.join(missing)}")
    return found


def write_requirements(hashes: Mapping[str, Sequence[str]]) -> str:
    """Return requirements.txt for this version, with these hashes of its own files."""
    lock = (part("environments") / _LOCK).read_text(encoding="utf-8")
    own = [
        " \\\n".join([name, *(f"    --hash=sha256:{each}" for each in sorted(found))])
        for name, found in hashes.items()
    ]
    others = [line for line in lock.splitlines() if not line.lstrip().startswith("#")]
    return "\n".join(["# `tollgate upgrade` writes this file.", *own, *others, ""])


def installed_version() -> str:
    """Return the version of this package."""
    return version(DISTRIBUTION)


def _hashes_by_pip(wanted: Sequence[str]) -> dict[str, Sequence[str]]:
    options = ("--dry-run", "--ignore-installed", "--no-deps", "--only-binary", ":all:")
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--report", "-", *options]
    report = json.loads(_run([*command, "--disable-pip-version-check", *wanted]))
    return {
        f"{each['metadata']['name']}=={each['metadata']['version']}": [
            each["download_info"]["archive_info"]["hashes"]["sha256"]
        ]
        for each in report["install"]
    }


def _hashes_by_uv(wanted: Sequence[str]) -> dict[str, Sequence[str]]:
    with NamedTemporaryFile("w", suffix=".in") as names:
        names.write("\n".join(wanted))
        names.flush()
        options = ("--no-deps", "--generate-hashes", "--no-header", "--no-annotate", "--quiet")
        lines = _run(["uv", "pip", "compile", *options, names.name]).splitlines()
    found: dict[str, Sequence[str]] = {}
    for line in lines:
        name, _, digest = line.partition("--hash=sha256:")
        if digest:
            last = next(reversed(found))
            found[last] = [*found[last], digest.removesuffix(" \\")]
        else:
            found[name.removesuffix(" \\")] = []
    return found


def _run(command: Sequence[str]) -> str:
    ended = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if ended.returncode:
        reason = ended.stderr.strip().rpartition("\n")[2].removeprefix("ERROR: ")
        raise NoHashes(f"the package index has no such version: {reason}")
    return ended.stdout
