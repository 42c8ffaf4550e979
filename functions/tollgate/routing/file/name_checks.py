"""Checks the names of models: reserved prefixes, duplicates, and ambiguous derived names."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from tollgate.routing.file.document import Where
from tollgate.routing.file.known_names import LoadedFile
from tollgate.routing.file.problems import Problem
from tollgate.routing.model_names import RESERVED_PREFIXES, fold_name, index_names
from tollgate.routing.schema import ModelSection

_NAMES_SHOWN_MAX: Final = 5


def check_names(files: Sequence[LoadedFile]) -> Iterator[Problem]:
    """Yield the problems of all names in the files of one catalog."""
    yield from _reserved(files)
    yield from _taken(files)
    yield from _ambiguous(files)


def _reserved(files: Sequence[LoadedFile]) -> Iterator[Problem]:
    for file in files:
        content = file.content
        places: list[tuple[Where, str]] = [
            *((("models", slug), slug) for slug in content.models),
            *((("aliases", name), name) for name in content.aliases),
            *((("routes", name), name) for name in content.routes),
        ]
        for where, name in places:
            if name.startswith(RESERVED_PREFIXES):
                yield file.document.at_key(where, "R023", _reserved_text(name))
        for where, name in _stated(file):
            if name.startswith(RESERVED_PREFIXES):
                yield file.document.at_value(where, "R023", _reserved_text(name))


def _reserved_text(name: str) -> str:
    prefix = next(prefix for prefix in RESERVED_PREFIXES if name.startswith(prefix))
    return f'"{name}" begins with the reserved prefix {prefix}, so requests cannot use it'


def _taken(files: Sequence[LoadedFile]) -> Iterator[Problem]:
    """Yield a problem for each name in `names` and `replaces` that is already in use."""
    written = {
        name: file.document.place_text((section, name))
        for file in files
        for section in ("models", "aliases", "routes")
        for name in file.names(section)
    }
    first: dict[str, str] = {}
    for file in files:
        for where, name in _stated(file):
            place = file.document.place_text(where)
            earlier = first.setdefault(fold_name(name), place)
            if name in written:
                message = f'"{name}" is already a model, alias or route, defined at {written[name]}'
                yield file.document.at_value(where, "R022", message)
            elif earlier != place:
                message = f'"{name}" is already stated as a name at {earlier}'
                yield file.document.at_value(where, "R022", message)


def _ambiguous(files: Sequence[LoadedFile]) -> Iterator[Problem]:
    """Yield a warning for each group of models that share derived names."""
    written = {
        name
        for file in files
        for section in ("models", "aliases", "routes")
        for name in file.names(section)
    }
    decided = {
        fold_name(name) for name in written | {name for file in files for _, name in _stated(file)}
    }
    shared: dict[tuple[str, ...], list[str]] = {}
    for key, slugs in index_names(_models(files)).slugs.items():
        if len(slugs) > 1 and key not in decided:
            shared.setdefault(slugs, []).append(key)
    places: Mapping[str, LoadedFile] = {
        slug: file for file in files for slug in file.content.models
    }
    for slugs, keys in shared.items():
        names = ", ".join(f'"{key}"' for key in sorted(keys)[:_NAMES_SHOWN_MAX])
        message = f"{names} could mean {' or '.join(slugs)}, so such requests will be refused"
        hint = "add the name to `names` of one model, or define an alias"
        where: Where = ("models", slugs[0], "name")
        yield places[slugs[0]].document.at_value(
            where, "R025", message, hint=hint, severity="warning"
        )


def _models(files: Sequence[LoadedFile]) -> Iterator[tuple[str, ModelSection]]:
    for file in files:
        yield from file.content.models.items()


def _stated(file: LoadedFile) -> Iterator[tuple[Where, str]]:
    for slug, model in file.content.models.items():
        for field, names in (("names", model.names), ("replaces", model.replaces)):
            for number, name in enumerate(names):
                yield ("models", slug, field, number), name
