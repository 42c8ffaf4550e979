"""Conversion of a fork of Tollgate into a gateway's repository, without a change of its catalog."""

import json
import re
import shutil
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Final

from tollgate.cli.catalog.release import CatalogRelease, split_sections
from tollgate.installation import PARTS
from tollgate.routing.file.catalog_parts import CATALOG_PART, IN_DEVELOPMENT, IN_PRODUCTION
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.file.document import Plain, YamlDocument, read_document
from tollgate.routing.file.includes import find_included
from tollgate.routing.file.problems import InvalidRouting

_ROUTING: Final = "routing.yaml"
_SIGN_IN: Final = "sign-in.json"
_STAGES: Final = "samconfig.toml"
# Sections that the repository takes from the release and from the fork's rows.
_REPLACED: Final = frozenset({"version", "include", "catalog", "providers", "models", "dev"})
# A stage of a repository names no template, because the package contains it.
_OF_CHECKOUTS: Final = re.compile(
    r"^\[[\w-]+\.(?:validate|build)\.parameters\]\n(?:(?!\[).*\n)*", re.M
)
_Rows = dict[str, Plain]


class CannotConvert(Exception):
    """Raised for a fork that cannot be converted; the message gives the reason."""


def convert_fork(fork: Path, folder: Path, release: CatalogRelease) -> list[str]:
    """Replace a repository's routing, stages and sign-in with the fork's; return notes.

    Raises CannotConvert unless the repository has exactly the catalog of the fork.
    """
    main = read_document(fork / _ROUTING, _ROUTING)
    shipped = read_document(folder / "catalog.yaml", "catalog.yaml")
    ours, others = _files_of(fork, main)
    own: dict[str, _Rows] = {"providers": {}, "models": {}}
    for file in ours:
        document = read_document(file, file.as_posix())
        for section, rows in own.items():
            rows |= _rows(document, section)
    taken = sorted(own["providers"].keys() & _rows(shipped, "providers").keys())
    parts = [slug for slug in taken if not any(slug.startswith(f"{other}-") for other in taken)]
    patches = {
        section: dict(_patches(rows, _taken(shipped, section, parts)))
        for section, rows in own.items()
    }
    include = [*(f"{CATALOG_PART}{slug}" for slug in parts), *others]
    text = "".join(_routing_text(fork, main, release=release, include=include, patches=patches))
    (folder / _ROUTING).write_text(text, encoding="utf-8")
    for glob in others:
        for file in find_included(fork / _ROUTING, glob, fork).files:
            copied = folder / file.relative_to(fork)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, copied)
    if (fork / _SIGN_IN).is_file():
        shutil.copy(fork / _SIGN_IN, folder)
    if (fork / _STAGES).is_file():
        stages = (fork / _STAGES).read_text(encoding="utf-8")
        (folder / _STAGES).write_text(_OF_CHECKOUTS.sub("", stages), encoding="utf-8")
    return _checked(fork, folder, patches)


def make_patch(base: Plain, wanted: Plain) -> Plain:
    """Return the JSON merge patch that turns `base` into `wanted`."""
    if not isinstance(base, dict) or not isinstance(wanted, dict):
        return wanted
    changed = {key: make_patch(base.get(key), wanted[key]) for key in _changed(base, wanted)}
    return changed | dict.fromkeys(base.keys() - wanted.keys())


def _changed(base: Mapping[str, Plain], wanted: Mapping[str, Plain]) -> Iterator[str]:
    return (key for key, value in wanted.items() if key not in base or base[key] != value)


def _checked(fork: Path, folder: Path, patches: Mapping[str, _Rows]) -> list[str]:
    """Return a note for each own row; raise CannotConvert unless both catalogs are the same."""
    try:
        before, after = (compile_catalog(each / _ROUTING).sha for each in (fork, folder))
    except InvalidRouting as invalid:
        raise CannotConvert(f"the routing of the fork cannot be used: {invalid}") from invalid
    if before != after:
        raise CannotConvert(
            f"the repository would serve catalog {after[:12]}, and the fork serves {before[:12]}"
        )
    kept = [f"  {section}: {', '.join(sorted(rows))}" for section, rows in patches.items() if rows]
    title = "Rows that differ from the catalog of this version are in routing.yaml:"
    return [f"The catalog is that of the fork, {after[:12]}.", *([title, *kept] if kept else [])]


def _files_of(fork: Path, main: YamlDocument) -> tuple[list[Path], list[str]]:
    """Return the files with the fork's catalog, and the other globs that its routing includes."""
    ours, others = [fork / _ROUTING], list[str]()
    entries = main.value(IN_PRODUCTION)
    for entry in entries if isinstance(entries, tuple) else ():
        if str(entry).startswith(PARTS["catalog"]):
            ours += find_included(fork / _ROUTING, str(entry), fork).files
        else:
            others.append(str(entry))
    return ours, others


def _rows(document: YamlDocument, section: str) -> _Rows:
    rows = document.value((section,))
    return rows if isinstance(rows, dict) else {}


def _taken(shipped: YamlDocument, section: str, parts: list[str]) -> _Rows:
    """Return those rows of the released catalog that the given parts include."""
    providers = {
        slug
        for slug in _rows(shipped, "providers")
        if any(f"{slug}-".startswith(f"{part}-") for part in parts)
    }
    rows = _rows(shipped, section)
    if section == "providers":
        return {slug: rows[slug] for slug in rows if slug in providers}
    return {
        slug: row
        for slug, row in rows.items()
        if isinstance(row, dict)
        and isinstance(endpoints := row["endpoints"], tuple)
        and any(isinstance(each, dict) and each["provider"] in providers for each in endpoints)
    }


def _patches(own: _Rows, taken: _Rows) -> Iterator[tuple[str, Plain]]:
    for slug in sorted(own.keys() | taken.keys()):
        if slug not in own:
            yield slug, None
        elif own[slug] != taken.get(slug):
            yield slug, make_patch(taken.get(slug), own[slug])


def _routing_text(
    fork: Path,
    main: YamlDocument,
    *,
    release: CatalogRelease,
    include: list[str],
    patches: Mapping[str, _Rows],
) -> Iterator[str]:
    yield "version: 1\n\n"
    yield f"include: [{', '.join(include)}]\n"
    yield f"catalog: {{ release: {release.day}, sha256: {release.sha256} }}\n"
    for section, rows in patches.items():
        if rows:
            yield f"\n{section}:\n"
            yield from (f"  {slug}: {_flow(row)}\n" for slug, row in rows.items())
    text = (fork / _ROUTING).read_text(encoding="utf-8")
    for section, lines in split_sections(text).items():
        if section not in _REPLACED:
            yield f"\n{lines.rstrip()}\n"
    development = main.value(IN_DEVELOPMENT)
    globs = [str(each) for each in development] if isinstance(development, tuple) else []
    kept = [CATALOG_PART + "simulator" if each == PARTS["simulator"] else each for each in globs]
    yield f"\ndev:\n  include: [{', '.join(kept)}]\n" if kept else ""


def _flow(value: Plain) -> str:
    """Return a value as YAML on one line, with numbers as they were written."""
    match value:
        case dict():
            return f"{{ {', '.join(f'{key}: {_flow(each)}' for key, each in value.items())} }}"
        case tuple():
            return f"[{', '.join(map(_flow, value))}]"
        case Decimal():
            return str(value)
        case _:
            return json.dumps(value, ensure_ascii=False)
