"""Wheels of a release: fetched by pip, verified by `gh`, and read without running them."""

import ast
import hashlib
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from tollgate.cli.upgrades.requirements import DISTRIBUTIONS, Pin
from tollgate.installation import PARTS, PartName

_PIP_TIMEOUT_S: Final = 300
_GH_TIMEOUT_S: Final = 120
_ITEM_VERSIONS: Final = "tollgate/stores/item_versions.py"
# The workflow whose attestation counts: no other workflow of the repository may have built a wheel.
_WORKFLOW: Final = ".github/workflows/release.yml"


class NoRelease(Exception):
    """Raised for a version that cannot be fetched, verified or read; nothing was changed."""


class ItemVersions(Struct, frozen=True):
    """The version of stored items that a release writes, and the highest version that it reads."""

    written: int
    read: int


class FetchedRelease(Struct, frozen=True, kw_only=True):
    """The wheels of a release, unpacked in a folder."""

    version: str
    pins: Mapping[str, Pin]
    wheels: Sequence[Path]
    folder: Path

    def part(self, name: PartName) -> Path:
        """Return the path of a part of the product in this release."""
        return self.folder / "tollgate" / "parts" / PARTS[name]

    def item_versions(self) -> ItemVersions:
        """Return the versions of the stored items, from the text of the release's code."""
        return read_item_versions(self.folder / _ITEM_VERSIONS)


def read_item_versions(file: Path) -> ItemVersions:
    """Return the numbers in a release's `item_versions.py`, without running the file."""
    numbers: dict[str, int] = {}
    for node in ast.parse(file.read_text(encoding="utf-8")).body:
        match node:
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=int(number))):
                numbers[name] = number
            case _:
                continue
    return ItemVersions(written=numbers["WRITTEN"], read=numbers["READ"])


def fetch_release(version: str | None, folder: Path) -> FetchedRelease:
    """Download the wheels of a version, or of the newest, and unpack the code without running it.

    Raises NoRelease if the index has no such version.
    """
    wheels = _download(version, folder / "wheels")
    versions = {_version_of(wheel) for wheel in wheels}
    if len(versions) != 1:
        raise NoRelease(f"the index has {' and '.join(sorted(versions))}, not one release")
    unpacked = folder / "release"
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            # zipfile writes no member outside the folder (documentation of ZipFile.extract).
            archive.extractall(unpacked)
    release = FetchedRelease(
        version=_version_of(wheels[0]),
        pins={
            name: Pin(_version_of(wheel), hashlib.sha256(wheel.read_bytes()).hexdigest())
            for name, wheel in zip(DISTRIBUTIONS, wheels, strict=True)
        },
        wheels=wheels,
        folder=unpacked,
    )
    if not (unpacked / _ITEM_VERSIONS).is_file() or not release.part("template").is_file():
        raise NoRelease(f"{wheels[-1].name} is not a release of Tollgate that can be upgraded to")
    return release


def verify_release(release: FetchedRelease, repository: str) -> None:
    """Raise NoRelease unless the repository's release workflow attests every wheel, for its tag.

    `gh attestation verify` checks Sigstore's signature and the identity of the workflow (GitHub CLI
    manual, 2026-11-27).
    """
    program = shutil.which("gh")
    if program is None:
        raise NoRelease(
            "the attestation cannot be checked, because GitHub's command `gh` is not installed: "
            "install it, or state --unverified"
        )
    for wheel in release.wheels:
        command = [program, "attestation", "verify", str(wheel), "--repo", repository]
        command += ["--signer-workflow", f"{repository}/{_WORKFLOW}"]
        command += ["--source-ref", f"refs/tags/v{release.version}", "--deny-self-hosted-runners"]
        ended = _run(command, _GH_TIMEOUT_S)
        if ended.returncode:
            raise NoRelease(
                f"{wheel.name} has no valid attestation of {repository} for the tag "
                f"v{release.version}: {_last_line(ended.stderr)}"
            )


def _download(version: str | None, folder: Path) -> list[Path]:
    """Download the wheel of each distribution, and return the wheels in the same order."""
    exact = f"=={version}" if version else ""
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check"]
    command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
    ended = _run([*command, *(f"{name}{exact}" for name in DISTRIBUTIONS)], _PIP_TIMEOUT_S)
    if ended.returncode:
        wanted = f"version {version}" if version else "a version"
        raise NoRelease(
            f"{wanted} cannot be fetched: {_last_line(ended.stderr)} (the index lacks it or does "
            "not answer; for wheels in a folder, set PIP_FIND_LINKS to the folder)"
        )
    # The name of a wheel has underscores (PyPA's specification of binary distributions).
    names = [name.replace("-", "_") for name in DISTRIBUTIONS]
    return [wheel for name in names for wheel in folder.glob(f"{name}-*.whl")]


def _run(command: list[str], timeout_s: int) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(  # noqa: S603 - no shell; a version begins with a name
            command, capture_output=True, text=True, check=False, timeout=timeout_s
        )
    except subprocess.TimeoutExpired as late:
        raise NoRelease(f"{Path(command[0]).name} took longer than {timeout_s} s") from late


def _version_of(wheel: Path) -> str:
    return wheel.name.split("-")[1]


def _last_line(text: str) -> str:
    return text.strip().rpartition("\n")[2].removeprefix("ERROR: ")
