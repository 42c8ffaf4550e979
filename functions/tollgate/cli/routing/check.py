"""`tollgate check` and `tollgate compile`: problems in a routing file, and its compiled form."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

import click
from msgspec import to_builtins
from pydantic_core import to_json

from tollgate.cli.options import routing_file, utc_today
from tollgate.cli.routing.permissions import read_pins
from tollgate.routing.file.compile import CompiledCatalog, compile_catalog, compile_routing
from tollgate.routing.file.load import Inspection, inspect
from tollgate.routing.file.problems import InvalidRouting, Problem, render_text
from tollgate.routing.routing_file import Routing
from tollgate.settings import Settings


@click.command(epilog="Example: tollgate check --warnings")
@routing_file
@click.option(
    "--format",
    "style",
    default="text",
    show_default=True,
    type=click.Choice(["text", "github", "json"]),
    help="Text, annotations for a GitHub workflow, or JSON.",
)
@click.option(
    "--template",
    default=Path("infra/template.yaml"),
    show_default=True,
    type=click.Path(path_type=Path, dir_okay=False),
    help="Template that lists which host may get which secret; ignored if missing.",
)
@click.option(
    "--warnings",
    "every",
    is_flag=True,
    help="In text, also list date-dependent warnings (old prices, models near retirement), and "
    "summarize the catalog. Other formats list every warning.",
)
def check(file: Path, style: str, template: Path, *, every: bool) -> None:
    """Check FILE and all files that it includes, even for development; exit with 1 on errors.

    In text, a file without problems prints nothing.
    """
    today = utc_today()
    inspection = inspect(
        file, dev=True, today=today, variables=Settings().variables, pinned=read_pins(template)
    )
    render = _as_short_text if style == "text" and not every else _STYLES[style]
    if shown := render(file, inspection):
        click.echo(shown)
    if inspection.errors:
        raise SystemExit(1)


@click.command("compile", epilog="Example: tollgate compile --output catalog.json --production")
@routing_file
@click.option(
    "--output",
    "-o",
    required=True,
    type=click.Path(path_type=Path, dir_okay=False, writable=True),
    help="File to write the compiled JSON to.",
)
@click.option(
    "--production/--dev",
    default=True,
    show_default=True,
    help="Leave out or keep the files that FILE includes for development.",
)
def compile_file(file: Path, output: Path, production: bool) -> None:
    """Write the compiled form of FILE; write nothing if FILE has errors."""
    compiled = compile_valid(file, dev=not production)
    # The file is renamed once it is complete, so that no reader sees a partial catalog.
    written = output.with_name(f"{output.name}.part")
    try:
        written.write_bytes(compiled.content)
        written.replace(output)
    except OSError as unwritable:
        raise click.ClickException(f"{output.as_posix()}: {unwritable.strerror}") from unwritable
    click.echo(f"{output.as_posix()}: catalog {compiled.sha}, {len(compiled.content)} bytes")


def compile_valid(file: Path, *, dev: bool = False) -> CompiledCatalog:
    """Return the compiled form of a routing file; raise ClickException if it has errors."""
    try:
        return compile_catalog(file, dev=dev, variables=Settings().variables)
    except InvalidRouting as invalid:
        raise click.ClickException(f"{file.as_posix()} must not be used.\n{invalid}") from invalid


def _as_text(file: Path, inspection: Inspection) -> str:
    return _in_lines(file, inspection, inspection.problems)


def _as_short_text(file: Path, inspection: Inspection) -> str:
    """Return the text without date-dependent warnings, "" if there are no other problems."""
    now = tuple(problem for problem in inspection.problems if not problem.comes_with_time)
    return _in_lines(file, inspection, now) if now else ""


def _in_lines(file: Path, inspection: Inspection, shown: Sequence[Problem]) -> str:
    errors = len(inspection.errors)
    warnings = _count(len(inspection.problems) - errors, "warning")
    if hidden := len(inspection.problems) - len(shown):
        warnings += f" ({hidden} of near or past days, which --warnings lists)"
    found = [_as_line(problem) for problem in shown]
    if inspection.production is None:
        return "\n".join([*found, f"{_count(errors, 'error')}, {warnings}"])
    noted = f", {warnings}" if inspection.problems else ""
    return "\n".join([*found, _summary(file, inspection.production, noted)])


def _as_line(problem: Problem) -> str:
    shown = render_text(problem)
    return click.style(shown, fg="red", bold=True) if problem.endangers_secret else shown


def _summary(file: Path, routing: Routing, noted: str) -> str:
    """Return a one-line summary of the catalog for production."""
    counts = ", ".join(
        _count(len(entries), kind)
        for kind, entries in (
            ("provider", routing.providers),
            ("model", routing.models),
            ("alias", routing.aliases),
            ("route", routing.routes),
        )
    )
    sha = compile_routing(routing).sha[:12]
    return f"{file.as_posix()} is fine: {counts}{noted}; catalog {sha}"


def _as_github(file: Path, inspection: Inspection) -> str:
    """Return the problems as workflow commands (docs.github.com, "Workflow commands", 2026-11)."""
    return "\n".join(_annotation(problem) for problem in inspection.problems)


def _annotation(problem: Problem) -> str:
    position = f"line={problem.line},col={problem.column}"
    text = f"{problem.message} ({problem.hint})" if problem.hint else problem.message
    file = _escaped(problem.file).replace(":", "%3A").replace(",", "%2C")
    return f"::{problem.severity} file={file},{position},title={problem.code}::{_escaped(text)}"


def _escaped(value: str) -> str:
    return value.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _as_json(file: Path, inspection: Inspection) -> str:
    sha = None if inspection.production is None else compile_routing(inspection.production).sha
    found = {"catalog_sha": sha, "problems": to_builtins(inspection.problems)}
    return to_json(found, indent=2).decode()


def _count(number: int, kind: str) -> str:
    plural = f"{kind}es" if kind.endswith("s") else f"{kind}s"
    return f"{number} {kind if number == 1 else plural}"


_STYLES: Final[Mapping[str, Callable[[Path, Inspection], str]]] = {
    "text": _as_text,
    "github": _as_github,
    "json": _as_json,
}
