"""Check of a release's wheels: `python -m infra.package WHEEL...`.

Of a poisoned release, the repository was clean and the wheel was not: a `.pth` file in it ran code
at every start of Python. CI therefore compares a published wheel with one that it builds again, and
refuses what no wheel of this project has.
"""

import base64
import configparser
import csv
import hashlib
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Final

_SCRIPTS: Final = {"console_scripts": {"tollgate": "tollgate.cli.main:main"}}
# Python runs these at its start or loads them as compiled code, from any folder on its path.
_REFUSED_SUFFIXES: Final = {".pth", ".pyc", ".pyd", ".so", ".dylib"}


def main() -> None:
    """Print a line for each refused file and exit with status 1, or print the checked wheels."""
    refused = 0
    for wheel in map(Path, sys.argv[1:]):
        for reason in refuse(wheel):
            refused += 1
            print(f"tollgate: {wheel.name}: {reason}", file=sys.stderr)
    if refused or not sys.argv[1:]:
        sys.exit(1)
    print(f"tollgate: checked {', '.join(Path(each).name for each in sys.argv[1:])}")


def refuse(wheel: Path) -> Iterator[str]:
    """Yield a reason for each file of a wheel that a release may not contain."""
    name, version, *_ = wheel.name.split("-")
    described = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(wheel) as archive:
        contents = {each: archive.read(each) for each in archive.namelist()}
    for path in map(PurePosixPath, contents):
        if path.parts[0] not in {"tollgate", described} or ".." in path.parts:
            yield f"{path} would be installed outside the package"
        elif path.suffix in _REFUSED_SUFFIXES:
            yield f"{path} could run without being imported"
    scripts = configparser.ConfigParser()
    scripts.read_string(contents.get(f"{described}/entry_points.txt", b"").decode())
    found = {section: dict(scripts[section]) for section in scripts.sections()}
    if found != _SCRIPTS:
        yield f"entry_points.txt has {found}, not {_SCRIPTS}"
    yield from _unrecorded(contents, f"{described}/RECORD")


def _unrecorded(contents: dict[str, bytes], record: str) -> Iterator[str]:
    rows = csv.reader(contents.get(record, b"").decode().splitlines())
    recorded = {path: digest for path, digest, _ in rows}
    for path in sorted(recorded.keys() - contents.keys()):
        yield f"{path} is in RECORD alone"
    for path, content in contents.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
        if path != record and recorded.get(path) != f"sha256={digest}":
            yield f"{path} is not as RECORD states"


if __name__ == "__main__":
    main()
