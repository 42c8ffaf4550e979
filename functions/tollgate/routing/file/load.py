"""Reads routing.yaml with its included files and finds all errors, for the command line."""

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path

from msgspec import Struct

from tollgate.core.secret import STANDARD_VARIABLES, KeyVariables
from tollgate.routing.file.catalog_parts import (
    CATALOG_FILE,
    CATALOG_PART,
    IN_DEVELOPMENT,
    IN_PRODUCTION,
    complete_rows,
    read_pinned,
    take_parts,
)
from tollgate.routing.file.crosscheck import crosscheck
from tollgate.routing.file.document import Where, YamlDocument, read_document
from tollgate.routing.file.guardrail_checks import check_guardrails
from tollgate.routing.file.includes import find_included
from tollgate.routing.file.known_names import LoadedFile
from tollgate.routing.file.preset_checks import check_presets
from tollgate.routing.file.problems import InvalidRouting, Problem
from tollgate.routing.file.prompt_policies import check_policy_is_met
from tollgate.routing.file.secret_checks import KeyRules
from tollgate.routing.file.tool_checks import check_ocr, check_server_tools
from tollgate.routing.file.validate import validate
from tollgate.routing.routing_file import Routing, RoutingFile
from tollgate.routing.schema import IncludedFile


class Inspection(Struct, frozen=True, kw_only=True):
    """Result of checking a file and the files that it includes."""

    problems: tuple[Problem, ...]
    routing: Routing | None
    """Routing of all files; None if there are errors other than those that `dev` allows."""
    production: Routing | None
    """Routing without the files for development; None if there is any error."""
    files: tuple[Path, ...]
    """Files that were read."""
    globs: tuple[str, ...] = ()
    """Globs of the files that the main file reads, except globs outside the repository."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Problems that prevent the use of the file."""
        return tuple(problem for problem in self.problems if problem.severity == "error")

    @property
    def errors_in_dev(self) -> tuple[Problem, ...]:
        """Problems that prevent even the use by `tollgate dev`."""
        return tuple(problem for problem in self.errors if not problem.allowed_in_dev)


def load(path: Path, *, dev: bool = False, variables: KeyVariables = STANDARD_VARIABLES) -> Routing:
    """Return the routing in a file; raise InvalidRouting with all errors if there are any."""
    inspection = inspect(path, dev=dev, variables=variables)
    if inspection.routing is None:
        raise InvalidRouting(inspection.errors_in_dev if dev else inspection.errors)
    return inspection.routing


def inspect(
    path: Path,
    *,
    dev: bool,
    today: date | None = None,
    top: Path | None = None,
    variables: KeyVariables = STANDARD_VARIABLES,
    pinned: frozenset[str] | None = None,
) -> Inspection:
    """Check a file and its included files; with `dev`, include the files for development.

    `today` enables warnings about old prices and aliases. Files outside `top` (default: the
    repository) are refused. Only `variables` may contain keys. `pinned` (pairs pinned in a
    template) enables warnings about new pairs of a secret and a host.
    """
    document = read_document(path, path.as_posix())
    release = read_pinned(document, path, top)
    if release is not None and release.refused:
        return _invalid([*document.problems, *release.refused], (path, *release.paths))
    parts: list[LoadedFile] = []
    development: list[LoadedFile] = []
    problems = list(document.problems)
    if release is not None:
        parts, found = take_parts(document, release, IN_PRODUCTION)
        if dev:
            development, more = take_parts(document, release, IN_DEVELOPMENT)
            found += more
        if found:
            # Each use of a missing row would be another error.
            return _invalid([*problems, *found], (path, *release.paths))
        document = complete_rows(document, release)
    main, found = validate(document, RoutingFile)
    problems += found
    files = [path, *(release.paths if release else ())]
    if main is None:
        return _invalid(problems, files)
    parts.insert(0, LoadedFile(document, main))
    globs: list[tuple[Where, str, list[LoadedFile]]] = [
        ((*IN_PRODUCTION, index), glob, parts) for index, glob in enumerate(main.include)
    ]
    if dev:
        globs += [
            ((*IN_DEVELOPMENT, index), glob, development)
            for index, glob in enumerate(main.dev.include)
        ]
    watched = [CATALOG_FILE] if release else []
    for where, glob, group in globs:
        if glob.startswith(CATALOG_PART):
            continue
        matching = find_included(path, glob, top)
        files += matching.files
        if matching.message:
            problems.append(document.at_value(where, matching.code, matching.message))
        if matching.code != "R008":
            watched.append(glob)
        found_parts, found = _parts(matching.files)
        problems += found
        group += found_parts
    rules = KeyRules(variables, pinned)
    problems += crosscheck(parts, development, today, rules)
    problems += _check_main_sections(document, main, parts, rules=rules, today=today)
    errors = [problem for problem in problems if problem.severity == "error"]
    clean = all(dev and problem.allowed_in_dev for problem in errors)
    return Inspection(
        problems=_in_order(problems),
        routing=_combine(main, [*parts, *development]) if clean else None,
        production=None if errors else _combine(main, parts),
        files=tuple(files),
        globs=tuple(watched),
    )


def _invalid(problems: list[Problem], files: Sequence[Path]) -> Inspection:
    return Inspection(
        problems=_in_order(problems),
        routing=None,
        production=None,
        files=tuple(files),
        globs=(CATALOG_FILE,) if len(files) > 1 else (),
    )


def _check_main_sections(
    document: YamlDocument,
    main: RoutingFile,
    parts: Sequence[LoadedFile],
    *,
    rules: KeyRules,
    today: date | None,
) -> Iterator[Problem]:
    """Yield the problems of sections that only the main file has."""
    models = {slug: model for part in parts for slug, model in part.content.models.items()}
    yield from check_server_tools(document, main.server_tools, models, rules=rules, today=today)
    if main.ocr is not None:
        yield from check_ocr(document, main.ocr, rules=rules, today=today)
    yield from check_guardrails(
        document,
        main.guardrails,
        models,
        {slug: row for part in parts for slug, row in part.content.providers.items()},
        routes={name for part in parts for name in part.content.routes},
        key_tiers={name for part in parts for name in part.content.key_tiers},
    )
    yield from check_presets(document, main, parts)
    yield from check_policy_is_met(document, main, parts)


def _parts(paths: Sequence[Path]) -> tuple[list[LoadedFile], list[Problem]]:
    parts: list[LoadedFile] = []
    problems: list[Problem] = []
    for path in paths:
        document = read_document(path, path.as_posix())
        content, found = validate(document, IncludedFile)
        problems += [*document.problems, *found]
        if content is not None:
            parts.append(LoadedFile(document, content))
    return parts, problems


def _combine(main: RoutingFile, parts: list[LoadedFile]) -> Routing:
    contents = [part.content for part in parts]
    return Routing(
        version=1,
        defaults=main.defaults,
        billing=main.billing,
        attribution=main.attribution,
        plugins=main.plugins,
        server_tools=main.server_tools,
        guardrails=main.guardrails,
        presets=main.presets,
        providers={slug: row for each in contents for slug, row in each.providers.items()},
        models={slug: model for each in contents for slug, model in each.models.items()},
        aliases={name: alias for each in contents for name, alias in each.aliases.items()},
        routes={name: route for each in contents for name, route in each.routes.items()},
        key_tiers={name: tier for each in contents for name, tier in each.key_tiers.items()},
    )


def _in_order(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda found: (found.file, found.line, found.column)))
