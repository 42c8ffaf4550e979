"""Wheels of a release in a folder that stands for an index: cut from this tree, or from a wheel."""

import base64
import hashlib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from tests.local_server import ROOT
from tollgate.installation import PARTS

_ITEM_VERSIONS: Final = "functions/tollgate/stores/item_versions.py"
# What an upgrade reads, by the path in the repository.
_READ: Final = (
    PARTS["template"],
    f"{PARTS['schema']}/routing.v1.json",
    f"{PARTS['environments']}/run.txt",
    _ITEM_VERSIONS,
)


def cut(index: Path, version: str, changed: Mapping[str, str]) -> None:
    """Put both wheels of a version into the index; `changed` has texts by their path here."""
    texts = {path: (ROOT / path).read_text() for path in _READ} | dict(changed)
    files = {
        path.removeprefix("functions/") if path == _ITEM_VERSIONS else f"tollgate/parts/{path}": it
        for path, it in texts.items()
    }
    _describe(index, "tollgate_llm_slim", version, files)
    _describe(index, "tollgate_llm", version, {})


def recut(wheel: Path, version: str, changed: Mapping[str, str]) -> None:
    """Put the same code under another version next to a wheel, with texts by their path in it."""
    name, current, *_ = wheel.name.split("-")
    with zipfile.ZipFile(wheel) as archive:
        contents = {each: archive.read(each) for each in archive.namelist()}
        # The package has scripts, which stay executable.
        modes = {each.filename: each.external_attr for each in archive.infolist()}
    assert changed.keys() <= contents.keys()
    contents |= {path: text.encode() for path, text in changed.items()}
    was, described = (f"{name}-{each}.dist-info" for each in (current, version))
    del contents[f"{was}/RECORD"]
    metadata = contents[f"{was}/METADATA"].decode()
    for line in ("Version: {}\n", "[server]=={}\n"):
        metadata = metadata.replace(line.format(current), line.format(version), 1)
    contents[f"{was}/METADATA"] = metadata.encode()
    _write(
        wheel.parent,
        name,
        version,
        {path.replace(was, described, 1): content for path, content in contents.items()},
        modes,
    )


def _describe(index: Path, name: str, version: str, files: Mapping[str, str]) -> None:
    described = f"{name}-{version}.dist-info"
    contents = {path: text.encode() for path, text in files.items()}
    contents[f"{described}/METADATA"] = (
        f"Metadata-Version: 2.1\nName: {name.replace('_', '-')}\nVersion: {version}\n"
    ).encode()
    contents[f"{described}/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: tests\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    _write(index, name, version, contents)


def _write(
    index: Path,
    name: str,
    version: str,
    contents: Mapping[str, bytes],
    modes: Mapping[str, int] = MappingProxyType({}),
) -> None:
    record = f"{name}-{version}.dist-info/RECORD"
    rows = [f"{path},sha256={_digest(it)},{len(it)}" for path, it in contents.items()]
    listed = "\n".join([*rows, f"{record},,", ""]).encode()
    index.mkdir(exist_ok=True)
    with zipfile.ZipFile(index / f"{name}-{version}-py3-none-any.whl", "w") as archive:
        for path, content in {**contents, record: listed}.items():
            entry = zipfile.ZipInfo(path)
            entry.external_attr = modes.get(path, 0o644 << 16)
            archive.writestr(entry, content)


def _digest(content: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
