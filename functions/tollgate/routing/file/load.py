"""Read routing.yaml and its included files, and find every error, not only the first.

For the command line: functions read the compiled form (planning/catalog.py).
"""

from collections.abc import Sequence
from datetime import date
from pathlib import Path

from msgspec import Struct

from tollgate.core.secret import STANDARD_VARIABLES, KeyVariables
from tollgate.routing.file.crosscheck import crosscheck
from tollgate.routing.file.document import Where, read_document
from tollgate.routing.file.includes import find_included
from tollgate.routing.file.known_names import LoadedFile
from tollgate.routing.file.problems import InvalidRouting, Problem
from tollgate.routing.file.secret_checks import KeyRules
from tollgate.routing.file.tool_checks import check_ocr, check_server_tools
from tollgate.routing.file.validate import validate
from tollgate.routing.routing_file import Routing, RoutingFile
from tollgate.routing.schema import IncludedFile


class Inspection(Struct, frozen=True, kw_only=True):
    """Result of reading a file and the files that it includes."""

    problems: tuple[Problem, ...]
    routing: Routing | None
    """None if there are errors; with `dev`, errors of production alone do not count."""
    production: Routing | None
    """The routing without the files that are included only for development."""
    files: tuple[Path, ...]
    """Every file that was read."""
    globs: tuple[str, ...] = ()
    """The `include` of the main file, without refused globs."""

    @property
    def errors(self) -> tuple[Problem, ...]:
        """Problems because of which the file must not be used."""
        return tuple(problem for problem in self.problems if problem.severity == "error")


def load(path: Path, *, dev: bool = False, variables: KeyVariables = STANDARD_VARIABLES) -> Routing:
    """Return the routing of a file; raise InvalidRouting with all errors if it has any."""
    inspection = inspect(path, dev=dev, variables=variables)
    if inspection.routing is None:
        raise InvalidRouting(inspection.errors)
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
    """Check a file and the files that it includes; with `dev`, also its development files.

    Without `today`, old prices and aliases cause no warnings. No file outside `top` is included;
    `top` defaults to the file's repository. Only `variables` may hold keys. Without `pinned` (the
    pairs of a template), new pairs of a secret and a host cause no warnings.
    """
    document = read_document(path, path.as_posix())
    problems = list(document.problems)
    main, found = validate(document, RoutingFile)
    problems += found
    if main is None:
        return Inspection(
            problems=_in_order(problems), routing=None, production=None, files=(path,)
        )
    parts = [LoadedFile(document, main)]
    development: list[LoadedFile] = []
    globs: list[tuple[Where, str, list[LoadedFile]]] = [
        (("include", index), glob, parts) for index, glob in enumerate(main.include)
    ]
    if dev:
        globs += [
            (("dev", "include", index), glob, development)
            for index, glob in enumerate(main.dev.include)
        ]
    files, watched = [path], list[str]()
    for where, glob, group in globs:
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
    models = {slug: model for part in parts for slug, model in part.content.models.items()}
    problems += check_server_tools(document, main.server_tools, models, rules=rules, today=today)
    if main.ocr is not None:
        problems += check_ocr(document, main.ocr, rules=rules, today=today)
    errors = [problem for problem in problems if problem.severity == "error"]
    clean = all(dev and problem.allowed_in_dev for problem in errors)
    return Inspection(
        problems=_in_order(problems),
        routing=_combine(main, [*parts, *development]) if clean else None,
        production=None if errors else _combine(main, parts),
        files=tuple(files),
        globs=tuple(watched),
    )


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
        providers={slug: row for each in contents for slug, row in each.providers.items()},
        models={slug: model for each in contents for slug, model in each.models.items()},
        aliases={name: alias for each in contents for name, alias in each.aliases.items()},
        routes={name: route for each in contents for name, route in each.routes.items()},
        key_tiers={name: tier for each in contents for name, tier in each.key_tiers.items()},
    )


def _in_order(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda found: (found.file, found.line, found.column)))
