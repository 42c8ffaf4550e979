"""`tollgate subprocessors`: the recipients of callers' data under a routing file, by region."""

from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

import click
from msgspec.structs import asdict, replace

from tollgate.cli.options import routing_file
from tollgate.cli.tables import OutputStyle, show
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.file.problems import InvalidRouting
from tollgate.routing.file.subprocessors import Subprocessor, list_models, list_subprocessors
from tollgate.routing.routing_file import Routing
from tollgate.settings import Settings

_COLUMNS: Final = ("name", "service", "host", "region", "data_policy", "models")


@click.command(epilog="Example: tollgate subprocessors --route smart --csv")
@routing_file
@click.option("--model", metavar="GLOB", help="Only recipients that serve these models, and tools.")
@click.option(
    "--route", metavar="NAME", help="Only recipients of this route's requests, and tools."
)
@click.option("--json", "style", flag_value="json", help="Print JSON.")
@click.option("--csv", "style", flag_value="csv", help="Print CSV.")
@click.option("--auto", "style", flag_value="auto", default="auto", hidden=True)
def subprocessors(file: Path, model: str | None, route: str | None, style: OutputStyle) -> None:
    """List the recipients of prompts, files and searches under FILE.

    An empty region means that FILE has none: ask the provider.
    """
    try:
        routing = compile_catalog(file, variables=Settings().variables).routing
    except InvalidRouting as invalid:
        raise click.ClickException(f"{file.as_posix()} must not be used.\n{invalid}") from invalid
    slugs = _selected(routing, model, route)
    found = [_serving(each, slugs) for each in list_subprocessors(routing)]
    shown = [each for each in found if each is not None]
    rows = [{**asdict(each), "models": _models(each, style)} for each in shown]
    show(rows, _COLUMNS, style, data=[asdict(each) for each in shown])


def _selected(routing: Routing, glob: str | None, name: str | None) -> frozenset[str]:
    """Return the models that a glob and the name of a route select; raise ClickException for an
    unknown route.
    """
    slugs = frozenset(routing.models)
    if name is not None:
        route = routing.routes.get(name)
        if route is None:
            known = ", ".join(sorted(routing.routes)) or "none"
            raise click.ClickException(f"There is no route {name}. Routes: {known}.")
        slugs = list_models(routing, route)
    return slugs if glob is None else frozenset(it for it in slugs if fnmatchcase(it, glob))


def _serving(each: Subprocessor, slugs: frozenset[str]) -> Subprocessor | None:
    """Return a recipient with the selected models; None if it serves none of them."""
    if not each.models:
        return each
    models = tuple(slug for slug in each.models if slug in slugs)
    return replace(each, models=models) if models else None


def _models(each: Subprocessor, style: OutputStyle) -> str:
    if style == "csv" or len(each.models) < 2:
        return " ".join(each.models)
    return f"{each.models[0]} and {len(each.models) - 1} more"
