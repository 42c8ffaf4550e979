"""`tollgate catalog release`: the providers and models of this version as one file with a day.

A gateway's repository holds such a file as `catalog.yaml`, pinned by its routing file. The file
contains the text of the catalog's files with their comments, so that changes can be reviewed.
"""

import re
from hashlib import sha256
from pathlib import Path
from typing import Final

import click
from msgspec import Struct

from tollgate.cli.catalog.edits import FileEdits
from tollgate.installation import part
from tollgate.routing.file.catalog_parts import CATALOG_FILE, IN_DEVELOPMENT, IN_PRODUCTION
from tollgate.routing.file.document import read_document
from tollgate.routing.file.includes import find_included

_SECTIONS: Final = ("providers", "models")
_KEY: Final = re.compile(r"([a-z_]+):")
_CHECKED: Final = re.compile(r"\bchecked: (\d{4}-\d{2}-\d{2})")
_RELEASED: Final = re.compile(r"^release: (\d{4}-\d{2}-\d{2})$", re.M)
_HEAD: Final = """\
# Providers, models and published prices, pinned by routing.yaml, whose own keys win over these.
# Never edited: `tollgate catalog refresh --release` replaces the file.
version: 1
release: {day}
"""


class NotARelease(ValueError):
    """Raised for a file that is not a release of the catalog."""


class CatalogRelease(Struct, frozen=True):
    """The catalog as one file, with the day of its last checked price."""

    day: str
    text: str

    @property
    def sha256(self) -> str:
        """SHA-256 that routing files state to pin this release."""
        return sha256(self.text.encode()).hexdigest()


def build_release(routing: Path) -> CatalogRelease:
    """Return the providers and models of a routing file and all files that it includes."""
    document = read_document(routing, routing.as_posix())
    files = [routing]
    for where in (IN_PRODUCTION, IN_DEVELOPMENT):
        globs = document.value(where)
        for glob in globs if isinstance(globs, tuple) else ():
            files += find_included(routing, str(glob)).files
    texts = [file.read_text(encoding="utf-8") for file in files]
    sections = "".join(
        f"\n{name}:\n" + "".join(_rows_of(text, name) for text in texts) for name in _SECTIONS
    )
    day = max(_CHECKED.findall(sections))
    return CatalogRelease(day, _HEAD.format(day=day) + sections)


def read_release(file: Path) -> CatalogRelease:
    """Return the release in a file; raise NotARelease for any other file."""
    try:
        text = file.read_text(encoding="utf-8")
    except OSError as unreadable:
        raise NotARelease(f"{file.as_posix()}: {unreadable.strerror}") from unreadable
    except UnicodeDecodeError:
        text = ""
    day = _RELEASED.search(text)
    if day is None:
        raise NotARelease(f"{file.as_posix()} is not a release of the catalog: it states no day")
    return CatalogRelease(day[1], text)


def installed_release() -> CatalogRelease:
    """Return the release that this version of Tollgate contains."""
    return build_release(part("routing"))


def take_release(routing: Path, taken: CatalogRelease) -> dict[Path, tuple[str, str]]:
    """Return catalog.yaml and the routing file before and after a release, if they change.

    Raises NotARelease for a release that is older than the pinned one.
    """
    pinned = read_document(routing, routing.as_posix()).value(("catalog", "release"))
    if isinstance(pinned, str) and taken.day < pinned:
        raise NotARelease(f"the release of {taken.day} is older than that of {pinned}, which stays")
    file = routing.with_name(CATALOG_FILE)
    before = file.read_text(encoding="utf-8") if file.exists() else ""
    text = routing.read_text(encoding="utf-8")
    edits = FileEdits(text)
    if pinned is None:
        pin = f"{{ release: {taken.day}, sha256: {taken.sha256} }}"
        edits.set_value((), "catalog", pin, after=("version", "include"))
    else:
        edits.set_value(("catalog",), "release", taken.day, after=())
        edits.set_value(("catalog",), "sha256", taken.sha256, after=("release",))
    texts = {file: (before, taken.text), routing: (text, edits.result())}
    return {path: both for path, both in texts.items() if both[0] != both[1]}


@click.command("release", epilog="Example: tollgate catalog release --output catalog.yaml")
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="File to write, such as catalog.yaml.",
)
def write_release(output: Path) -> None:
    """Write the catalog of this version as one file, which repositories of gateways include."""
    made = installed_release()
    output.write_text(made.text, encoding="utf-8")
    click.echo(f"{output.as_posix()}: release {made.day}, sha256 {made.sha256}")


def split_sections(text: str) -> dict[str, str]:
    """Return the lines of each top-level section of a routing file, including its key."""
    sections: dict[str, str] = {}
    name = None
    for line in text.splitlines(keepends=True):
        if key := _KEY.match(line):
            name = key[1]
        if name is not None:
            sections[name] = sections.get(name, "") + line
    return sections


def _rows_of(text: str, section: str) -> str:
    """Return the indented lines of a section, without blank lines and the file's comments."""
    lines = split_sections(text).get(section, "").splitlines(keepends=True)
    return "".join(line for line in lines if line.startswith(" "))
