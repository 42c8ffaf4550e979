"""Reads routing.yaml and what it includes; finds every error, not only the first.

For the command line: functions read the compiled form through `catalog`.
"""

from dataclasses import dataclass
from datetime import date
from pathlib import Path

from tollgate.routing.crosscheck import Part, crosscheck
from tollgate.routing.document import Document, read_document
from tollgate.routing.problems import InvalidRouting, Problem
from tollgate.routing.schema import IncludedFile, Routing, RoutingFile
from tollgate.routing.validate import validate


@dataclass(frozen=True, slots=True, kw_only=True)
class Inspection:
    """What was found; `routing` is None if there are errors."""

    problems: tuple[Problem, ...]
    routing: Routing | None

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that forbid the use of the file."""
        return tuple(problem for problem in self.problems if problem.severity == "error")


def load(path: Path, *, dev: bool = False) -> Routing:
    """The routing of a file; InvalidRouting with every error if there is one."""
    inspection = inspect(path, dev=dev)
    if inspection.routing is None:
        raise InvalidRouting(inspection.errors)
    return inspection.routing


def inspect(path: Path, *, dev: bool, today: date | None = None) -> Inspection:
    """Check a file, and with `dev` the files it includes.

    Without `today` nothing is said about prices and aliases that have grown old.
    """
    document = read_document(path, path.as_posix())
    problems = list(document.problems)
    main, found = validate(document, RoutingFile)
    problems += found
    if main is None:
        return Inspection(problems=_in_order(problems), routing=None)
    parts = [Part(document, main)]
    for index, name in enumerate(main.dev.include if dev else ()):
        included, found = _included(document, index, path.parent / name)
        problems += found
        if included:
            parts.append(included)
    problems += crosscheck(parts, today)
    clean = all(problem.severity != "error" for problem in problems)
    return Inspection(problems=_in_order(problems), routing=_merged(main, parts) if clean else None)


def _included(main: Document, index: int, path: Path) -> tuple[Part | None, list[Problem]]:
    if not path.is_file():
        message = f"{path.as_posix()} is not a file"
        return None, [main.at_value(("dev", "include", index), "R007", message)]
    document = read_document(path, path.as_posix())
    content, problems = validate(document, IncludedFile)
    part = None if content is None else Part(document, content)
    return part, [*document.problems, *problems]


def _merged(main: RoutingFile, parts: list[Part]) -> Routing:
    contents = [part.content for part in parts]
    return Routing(
        version=1,
        defaults=main.defaults,
        billing=main.billing,
        providers={slug: row for each in contents for slug, row in each.providers.items()},
        models={slug: model for each in contents for slug, model in each.models.items()},
        aliases={name: alias for each in contents for name, alias in each.aliases.items()},
        routes={name: route for each in contents for name, route in each.routes.items()},
    )


def _in_order(problems: list[Problem]) -> tuple[Problem, ...]:
    return tuple(sorted(problems, key=lambda found: (found.file, found.line, found.column)))
