"""Adds parts of a catalog release to a routing file: `include: [tollgate:openai]`.

The release is one file with providers and models, `catalog.yaml` next to the routing file, which
`tollgate catalog release` writes. The routing file's section `catalog` pins its day and SHA-256.
"""

from collections.abc import Collection, Container, Iterable, Iterator, Mapping
from difflib import get_close_matches
from hashlib import sha256
from pathlib import Path
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.routing.file.document import Plain, Where, YamlDocument, read_document
from tollgate.routing.file.includes import find_included
from tollgate.routing.file.known_names import LoadedFile
from tollgate.routing.file.problems import Problem
from tollgate.routing.file.validate import validate
from tollgate.routing.schema import IncludedFile

CATALOG_FILE: Final = "catalog.yaml"
CATALOG_PART: Final = "tollgate:"
IN_PRODUCTION: Final[Where] = ("include",)
IN_DEVELOPMENT: Final[Where] = ("dev", "include")

_SHA_SHOWN: Final = 12
_TO_TAKE: Final = "`tollgate catalog refresh --release installed --write` writes both"
_Rows = Mapping[str, Plain]


class PinnedRelease(Struct, frozen=True):
    """Release of the catalog next to a routing file."""

    document: YamlDocument
    paths: tuple[Path, ...] = ()
    refused: tuple[Problem, ...] = ()
    """The problems of a release that is missing, unreadable, or different from the pinned one."""


def file_glob(entry: str) -> str:
    """Return the glob of the files that an entry of `include` reads."""
    return CATALOG_FILE if entry.startswith(CATALOG_PART) else entry


def read_pinned(main: YamlDocument, path: Path, top: Path | None) -> PinnedRelease | None:
    """Return the release whose parts `main` includes; None if it includes none."""
    parts = {**dict(_parts_of(main, IN_PRODUCTION)), **dict(_parts_of(main, IN_DEVELOPMENT))}
    if not parts:
        return None
    first = next(iter(parts))
    found = find_included(path, CATALOG_FILE, top)
    if found.message:
        message = f"{found.message}, from which {parts[first]} is read"
        refused = main.at_value(first, "R009", message, hint=_TO_TAKE)
        return PinnedRelease(YamlDocument(CATALOG_FILE), refused=(refused,))
    (file,) = found.files
    document = read_document(file, file.as_posix())
    problems = document.problems or _check_pin(main, document, file)
    return PinnedRelease(document, found.files, tuple(problems))


def complete_rows(main: YamlDocument, release: PinnedRelease) -> YamlDocument:
    """Return the routing file with the catalog's rows merged in.

    A row of `main` is merged into the catalog's row of the same name as a JSON merge patch (RFC
    7396): mappings are merged by key, other values are replaced, and null removes a value. Models
    get the endpoints of the parts for production, so that a part for development changes no row of
    production.
    """
    if not isinstance(main.content, dict):
        return main
    models = _section(release.document, "models")
    taken = _taken(main, release, dict(_parts_of(main, IN_PRODUCTION)).values())
    offered = dict(_models_at(models, taken))
    bases = {slug: offered.get(slug) or _without(row, "endpoints") for slug, row in models.items()}
    completed = {
        "providers": dict(
            _completed(_section(main, "providers"), _section(release.document, "providers"))
        ),
        "models": dict(_completed(_section(main, "models"), bases)),
    }
    stated = {name: rows for name, rows in completed.items() if name in main.content}
    return replace(main, content={**main.content, **stated})


def take_parts(
    main: YamlDocument, release: PinnedRelease, where: Where
) -> tuple[list[LoadedFile], list[Problem]]:
    """Return the parts of the catalog that `main` includes."""
    parts = dict(_parts_of(main, where))
    if not parts:
        return [], []
    document = release.document
    own_providers, own_models = _section(main, "providers"), _section(main, "models")
    problems = list(_check_parts(main, parts, _section(document, "providers")))
    taken = _taken(main, release, parts.values())
    offered = dict(_models_at(_section(document, "models"), taken))
    known = offered.keys() | own_models.keys()
    content: dict[str, Plain] = {
        "version": 1,
        "providers": {slug: row for slug, row in taken.items() if slug not in own_providers},
        "models": {
            slug: _with_successor(model, known)
            for slug, model in offered.items()
            if slug not in own_models
        },
    }
    part = replace(document, content=content, problems=[])
    rows, invalid = validate(part, IncludedFile)
    return [LoadedFile(part, rows)] if rows else [], [*problems, *invalid]


def merge_patch(base: Plain, patch: Plain) -> Plain:
    """Return a value after a JSON merge patch."""
    if not isinstance(patch, dict):
        return patch
    merged = dict(base) if isinstance(base, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = merge_patch(merged.get(key), value)
    return merged


def _parts_of(main: YamlDocument, where: Where) -> Iterator[tuple[Where, str]]:
    entries = main.value(where)
    for index, entry in enumerate(entries if isinstance(entries, tuple) else ()):
        if isinstance(entry, str) and entry.startswith(CATALOG_PART):
            yield (*where, index), entry


def _check_pin(main: YamlDocument, document: YamlDocument, file: Path) -> Iterator[Problem]:
    """Yield a problem unless `main` pins the day and SHA-256 of the release in `file`."""
    release = document.value(("release",))
    sha = sha256(file.read_bytes()).hexdigest()
    pinned = main.value(("catalog",))
    if not isinstance(pinned, dict):
        message = f'"catalog" is missing: it pins the release in {CATALOG_FILE}'
        hint = f"write catalog: {{ release: {release}, sha256: … }}; {_TO_TAKE}"
        yield main.at_key(("include",), "R009", message, hint=hint)
    elif (pinned.get("release"), pinned.get("sha256")) != (release, sha):
        stated = f"{pinned.get('release')} ({str(pinned.get('sha256'))[:_SHA_SHOWN]})"
        message = f"{CATALOG_FILE} is {release} ({sha[:_SHA_SHOWN]}), but {stated} is pinned"
        yield main.at_key(("catalog",), "R009", message, hint=f"restore one of them; {_TO_TAKE}")


def _check_parts(
    main: YamlDocument, parts: Mapping[Where, str], providers: _Rows
) -> Iterator[Problem]:
    for where, part in parts.items():
        if not any(_is_in(slug, (part,)) for slug in providers):
            known = [f"{CATALOG_PART}{slug}" for slug in providers]
            nearest = get_close_matches(part, known, n=1)
            hint = f": did you mean {nearest[0]}?" if nearest else ""
            message = f"{CATALOG_FILE} has no provider {part.removeprefix(CATALOG_PART)}{hint}"
            yield main.at_value(where, "R009", message)


def _is_in(slug: str, parts: Iterable[str]) -> bool:
    """Return True if a part names the provider itself, or the beginning of its name before `-`."""
    return any(f"{CATALOG_PART}{slug}-".startswith(f"{part}-") for part in parts)


def _taken(main: YamlDocument, release: PinnedRelease, parts: Collection[str]) -> _Rows:
    """Return the catalog's providers in the included parts, except those that `main` removes."""
    own = _section(main, "providers")
    providers = _section(release.document, "providers").items()
    return {
        slug: row
        for slug, row in providers
        if _is_in(slug, parts) and own.get(slug, row) is not None
    }


def _section(document: YamlDocument, name: str) -> _Rows:
    rows = document.value((name,))
    return rows if isinstance(rows, dict) else {}


def _completed(own: _Rows, bases: _Rows) -> Iterator[tuple[str, Plain]]:
    """Yield the catalog's rows with the routing file's rows merged in; null removes a row."""
    for slug, row in own.items():
        if slug not in bases:
            yield slug, row
        elif row is not None:
            yield slug, merge_patch(bases[slug], row)


def _models_at(models: _Rows, providers: Container[Plain]) -> Iterator[tuple[str, Plain]]:
    """Yield the models with an endpoint at one of the providers, without their other endpoints."""
    for slug, model in models.items():
        endpoints = model.get("endpoints") if isinstance(model, dict) else None
        if not isinstance(model, dict) or not isinstance(endpoints, tuple):
            continue
        at_these = tuple(
            each for each in endpoints if isinstance(each, dict) and each["provider"] in providers
        )
        if at_these:
            yield slug, {**model, "endpoints": at_these}


def _with_successor(model: Plain, known: Container[Plain]) -> Plain:
    """Return a model, without its successor if the successor is not included."""
    if isinstance(model, dict) and "successor" in model and model["successor"] not in known:
        return _without(_without(model, "successor"), "after_retirement")
    return model


def _without(row: Plain, key: str) -> Plain:
    return {name: row[name] for name in row if name != key} if isinstance(row, dict) else row
