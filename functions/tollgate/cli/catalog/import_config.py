"""`tollgate import`: convert the configuration of another gateway to a routing file."""

from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import click
import yaml
from typing_extensions import override

from tollgate.cli.catalog.litellm_config import NotALitellmConfig, read_litellm_config
from tollgate.cli.catalog.litellm_endpoints import Placement
from tollgate.cli.catalog.litellm_import import ImportedRouting, import_litellm
from tollgate.cli.options import routing_option, utc_today
from tollgate.cli.routing.model_entry import yaml_dollars
from tollgate.routing.file.load import inspect, load
from tollgate.routing.file.problems import InvalidRouting, render_text
from tollgate.settings import Settings

_LINE: Final = 110


@click.group("import")
def import_commands() -> None:
    """Convert the configuration of another gateway to a routing file."""


@import_commands.command()
@click.argument("config", type=click.Path(path_type=Path, dir_okay=False))
@routing_option("--base", "Routing file to take providers, limits and prices from.")
@click.option(
    "--output",
    "-o",
    type=click.Path(path_type=Path, dir_okay=False),
    help="File to write, which must not exist; by default, the result is printed.",
)
def litellm(config: Path, base: Path, output: Path | None) -> None:
    """Convert CONFIG of LiteLLM's proxy, and list the settings without a counterpart.

    Models, aliases, weights and retries are copied, fallbacks become routes, and budgets for keys
    become tiers. Limits and prices come from the base file, from genai-prices or from CONFIG. Keys
    written in CONFIG are not copied.
    """
    today = utc_today()
    if output is not None and output.exists():
        raise click.ClickException(f"{output.as_posix()} exists already.")
    try:
        read = read_litellm_config(config)
        placement = Placement(load(base, variables=Settings().variables), today)
    except (NotALitellmConfig, InvalidRouting) as unusable:
        raise click.ClickException(str(unusable)) from unusable
    imported = import_litellm(read, placement)
    text = render_routing(imported, config)
    if output is None:
        click.echo(text)
    else:
        output.write_text(text, encoding="utf-8")
        for problem in inspect(output, dev=False, variables=Settings().variables).problems:
            click.echo(render_text(problem), err=True)
    for where, note in imported.notes:
        click.echo(f"{where}: {note}", err=True)
    counts = {
        name: len(imported.sections.get(name, ())) for name in ("models", "aliases", "routes")
    }
    found = ", ".join(f"{count} {name}" for name, count in counts.items())
    click.echo(f"{config.as_posix()}: {found}; {len(imported.notes)} notes", err=True)


def render_routing(imported: ImportedRouting, config: Path) -> str:
    """Return the text of a routing file."""
    head = (
        "# yaml-language-server: $schema=infra/schema/routing.v1.json\n"
        f"# From {config.name}, by `tollgate import litellm`.\n"
        "version: 1\n\n"
    )
    sections = (
        yaml.dump(
            {name: _with_plain_rates(section)},
            Dumper=_Dumper,
            sort_keys=False,
            width=_LINE,
            allow_unicode=True,
            default_flow_style=None,
        )
        for name, section in imported.sections.items()
        if name != "version"
    )
    return head + "\n".join(sections)


def _with_plain_rates(content: Any, *, is_price: bool = False) -> Any:
    """Return the content with each rate as a decimal, which YAML writes without quotes."""
    match content:
        case dict():
            return {
                key: Decimal(value)
                if is_price and isinstance(value, str) and key != "source"
                else _with_plain_rates(value, is_price=key == "price")
                for key, value in content.items()
            }
        case list() | tuple():
            return [_with_plain_rates(each) for each in content]
        case _:
            return content


class _Dumper(yaml.SafeDumper):
    """A YAML dumper that writes decimals and dates as plain scalars, and no anchors."""

    @override
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _write_decimal(dumper: yaml.SafeDumper, amount: Decimal) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:float", yaml_dollars(amount))


def _write_day(dumper: yaml.SafeDumper, day: date) -> yaml.Node:
    return dumper.represent_scalar("tag:yaml.org,2002:timestamp", day.isoformat())


_Dumper.add_representer(Decimal, _write_decimal)
_Dumper.add_representer(date, _write_day)
