"""`tollgate import`: convert the configuration of another gateway to a routing file."""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from functools import wraps
from pathlib import Path
from shlex import join
from tempfile import TemporaryDirectory
from typing import Any, Final

import click
import yaml
from msgspec import Struct
from typing_extensions import override

from tollgate.cli.catalog.apps_gateway_config import read_apps_gateway
from tollgate.cli.catalog.bedrock_gateway_settings import read_bedrock_gateway
from tollgate.cli.catalog.litellm_config import (
    ImportNote,
    LitellmConfig,
    NotALitellmConfig,
    read_litellm_config,
)
from tollgate.cli.catalog.litellm_endpoints import Placement
from tollgate.cli.catalog.litellm_import import ImportedRouting, import_litellm
from tollgate.cli.catalog.litellm_people import NotAnExport, PeopleImport, read_export
from tollgate.cli.catalog.litellm_replay import ReplayedName, replay_names
from tollgate.cli.catalog.openrouter_presets import read_openrouter_presets
from tollgate.cli.catalog.portkey_config import read_portkey
from tollgate.cli.catalog.price_map import NotAPriceMap, read_price_map
from tollgate.cli.options import routing_option, utc_today
from tollgate.cli.routing.model_entry import yaml_dollars
from tollgate.core.clock import SystemClock
from tollgate.routing.file.compile import compile_routing
from tollgate.routing.file.load import Inspection, inspect, load
from tollgate.routing.file.problems import InvalidRouting, render_text
from tollgate.routing.planning.catalog import Catalog
from tollgate.settings import Settings

_LINE: Final = 110


@click.group("import")
def import_commands() -> None:
    """Convert the configuration of another gateway to a routing file."""


class _Target(Struct, frozen=True, kw_only=True):
    """The options that all conversion commands accept."""

    config: Path
    base: Path
    price_map: Path | None
    output: Path | None


def _converts(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options of a conversion, which `command` gets as a `_Target`."""

    @wraps(command)
    def run_command(
        config: Path, base: Path, price_map: Path | None, output: Path | None, **options: Any
    ) -> None:
        target = _Target(config=config, base=base, price_map=price_map, output=output)
        command(target, **options)

    run: Callable[..., None] = run_command
    for decorate in (
        click.option(
            "--output",
            "-o",
            type=click.Path(path_type=Path, dir_okay=False),
            help="File to write, which must not exist; by default, the result is printed.",
        ),
        click.option(
            "--price-map",
            type=click.Path(path_type=Path, exists=True, dir_okay=False),
            help="litellm wheel with limits and prices of models that the base file lacks. "
            "`python -m pip download --no-deps litellm` fetches a wheel.",
        ),
        routing_option("--base", "Routing file to take providers, limits and prices from."),
        click.argument("config", type=click.Path(path_type=Path, dir_okay=False)),
    ):
        run = decorate(run)
    return run


@import_commands.command(epilog="Example: tollgate import litellm config.yaml -o new.yaml")
@_converts
@click.option(
    "--address",
    "addresses",
    multiple=True,
    metavar="NAME=URL",
    help="Address that CONFIG has as os.environ/NAME; may be repeated.",
)
def litellm(target: _Target, *, addresses: tuple[str, ...]) -> None:
    """Convert CONFIG, a LiteLLM proxy config, and show what serves each name before and after.

    Models, aliases, weights and retries are copied, fallbacks become routes, and budgets for keys
    become tiers. Limits and prices come from the base file, from the price map, from genai-prices
    or from CONFIG. Settings without a counterpart are listed; red lines may change an answer. Keys
    written in CONFIG are not copied.
    """
    known = dict(_pair("--address", "NAME=URL", text) for text in addresses)
    _convert(target, lambda _: read_litellm_config(target.config), known)


@import_commands.command(
    epilog="Example: tollgate import portkey smart.json --provider prod-key=openai"
)
@_converts
@click.option(
    "--provider",
    "providers",
    multiple=True,
    metavar="NAME=PROVIDER",
    help="Provider behind a virtual key or @slug, such as prod-key=openai; may be repeated.",
)
def portkey(target: _Target, *, providers: tuple[str, ...]) -> None:
    """Convert CONFIG, the JSON of a Portkey config, to a model with the name of the file.

    Weights, fallbacks, conditions on the model and retries are copied. Settings without a
    counterpart are listed; red lines may change an answer. Keys written in CONFIG are not copied.
    """
    known = dict(_pair("--provider", "NAME=PROVIDER", text) for text in providers)
    _convert(target, lambda _: read_portkey(target.config, known))


@import_commands.command(
    "claude-gateway", epilog="Example: tollgate import claude-gateway gateway.yaml -o new.yaml"
)
@_converts
def claude_gateway(target: _Target) -> None:
    """Convert CONFIG, the gateway.yaml of Anthropic's Claude apps gateway.

    Models and the order of their upstreams are copied. Settings without a counterpart are listed.
    """
    _convert(target, lambda placement: read_apps_gateway(target.config, placement))


@import_commands.command(
    "openrouter-presets",
    epilog="Example: tollgate import openrouter-presets presets.json -o new.yaml",
)
@_converts
def openrouter_presets(target: _Target) -> None:
    """Convert CONFIG, a reply of OpenRouter's /presets/SLUG or a JSON list of such replies.

    Models and the choice of providers are copied, to the base file's endpoints. Parameters and
    system prompts are listed.
    """
    _convert(target, lambda placement: read_openrouter_presets(target.config, placement))


@import_commands.command(
    "bedrock-gateway", epilog="Example: tollgate import bedrock-gateway settings.env -o new.yaml"
)
@_converts
def bedrock_gateway(target: _Target) -> None:
    """Convert CONFIG, the environment of bedrock-access-gateway as lines of NAME=VALUE.

    The result has the base file's models on Bedrock, and the default models as aliases.
    """
    _convert(target, lambda placement: read_bedrock_gateway(target.config, placement))


def _convert(
    target: _Target,
    read: Callable[[Placement], LitellmConfig],
    addresses: Mapping[str, str] | None = None,
) -> None:
    """Write the converted routing file, and print notes and the replay."""
    config, output = target.config, target.output
    if output is not None and output.exists():
        raise click.ClickException(f"{output.as_posix()} exists already.")
    try:
        placement = Placement(
            load(target.base, variables=Settings().variables),
            utc_today(),
            price_map=read_price_map(target.price_map) if target.price_map else None,
            addresses=addresses or {},
        )
        source = read(placement)
    except (NotALitellmConfig, NotAPriceMap, InvalidRouting) as unusable:
        raise click.ClickException(str(unusable)) from unusable
    imported = import_litellm(source, placement)
    text = render_routing(imported, config)
    if output is None:
        click.echo(text)
        with TemporaryDirectory() as folder:
            inspection = _written(Path(folder) / "routing.yaml", text)
    else:
        inspection = _written(output, text)
        for problem in inspection.problems:
            click.echo(render_text(problem), err=True)
    _show_notes(imported.notes)
    counts = {
        name: len(imported.sections.get(name, ())) for name in ("models", "aliases", "routes")
    }
    found = ", ".join(f"{count} {name}" for name, count in counts.items())
    click.echo(f"{config.as_posix()}: {found}; {len(imported.notes)} notes", err=True)
    if inspection.routing is None:
        click.secho("No replay: the file has errors.", err=True, fg="red")
        return
    catalog = Catalog.from_json(compile_routing(inspection.routing).content)
    _show_replay(list(replay_names(catalog, imported.sources, SystemClock().now_s())))


def _exports(option: str, description: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    return click.option(
        option,
        multiple=True,
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help=f"{description} May be repeated, such as for each page.",
    )


@import_commands.command(
    "litellm-keys",
    epilog="Example: tollgate import litellm-keys --keys keys.json > create.sh",
)
@_exports("--teams", "Answer of /team/list, or LiteLLM_TeamTable as CSV.")
@_exports("--users", "Answer of /user/list, or LiteLLM_UserTable as CSV.")
@_exports("--keys", "Answer of /key/list?return_full_object=true, or its table as CSV.")
def litellm_keys(teams: tuple[Path, ...], users: tuple[Path, ...], keys: tuple[Path, ...]) -> None:
    """Print a shell script that creates LiteLLM's teams, users and virtual keys here.

    Budgets, rates, models and expiry are copied. Each key gets a new secret, which the script
    prints, because LiteLLM stores only hashes. Spending so far is not copied.
    """
    people = PeopleImport(datetime.fromtimestamp(SystemClock().now_s(), UTC))
    try:
        commands = [
            command
            for paths, convert in (
                (teams, people.teams),
                (users, people.members),
                (keys, people.keys),
            )
            for command in convert([row for path in paths for row in read_export(path)])
        ]
    except NotAnExport as unusable:
        raise click.ClickException(str(unusable)) from unusable
    click.echo("#!/bin/sh\n# Set TOLLGATE_URL and TOLLGATE_KEY, review, and run.\nset -eu")
    for command in commands:
        click.echo(join(command))
    _show_notes(people.notes)
    click.echo(f"{len(commands)} commands; {len(people.notes)} notes", err=True)


def _show_notes(notes: Sequence[ImportNote]) -> None:
    for note in notes:
        click.secho(f"{note.where}: {note.text}", err=True, fg="red" if note.is_loss else None)


def _pair(option: str, form: str, text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator:
        raise click.UsageError(f"{option} {text}: write {form}.")
    return name, value


def _written(path: Path, text: str) -> Inspection:
    path.write_text(text, encoding="utf-8")
    # An address on this machine is an error in production, but does not prevent a replay.
    return inspect(path, dev=True, variables=Settings().variables)


def _show_replay(replayed: Sequence[ReplayedName]) -> None:
    """Print the endpoints that serve each name before and after the import; changes are red.

    All names that match a wildcard and are served as before share one line.
    """
    kept: dict[tuple[str, str], int] = {}
    for served in replayed:
        shapes = ", ".join(served.shapes)
        if served.wildcard and not served.changed:
            kept[served.wildcard, shapes] = kept.get((served.wildcard, shapes), 0) + 1
            continue
        mark, color = ("!", "red") if served.changed else ("=", None)
        lines = [
            f"{mark} {served.name}: {shapes}",
            f"    before  {served.before}",
        ]
        lines.append(f"    after   {served.after}")
        if served.changed:
            lines.append(f"    because {served.changed}")
        click.secho("\n".join(lines), err=True, fg=color)
    for (wildcard, shapes), count in kept.items():
        click.echo(f"= {wildcard} (names: {count}): {shapes}", err=True)
    changed = sum(len(served.shapes) for served in replayed if served.changed)
    total = sum(len(served.shapes) for served in replayed)
    names = len({served.name for served in replayed})
    text = f"Replayed requests: {total}; names: {names}. Served otherwise: "
    click.secho(f"{text}{changed}.", err=True, fg="red" if changed else None)


def render_routing(imported: ImportedRouting, config: Path) -> str:
    """Return the text of a routing file."""
    head = (
        "# yaml-language-server: $schema=infra/schema/routing.v1.json\n"
        f"# From {config.name}, by `tollgate import`.\n"
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
