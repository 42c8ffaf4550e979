"""`tollgate models`: add a model to a routing file, for a person to review and commit."""

import re
from contextlib import suppress
from datetime import date
from difflib import unified_diff
from pathlib import Path
from typing import get_args

import click
from msgspec.structs import replace

from tollgate.cli.options import routing_file, utc_today
from tollgate.cli.routing.model_entry import ModelEntry, Unplaceable, insert_model
from tollgate.cli.routing.published_prices import (
    SOURCE,
    Published,
    Unpublished,
    find_published_price,
    is_published,
)
from tollgate.core.request import Capability, Modality
from tollgate.routing.file.load import inspect, load
from tollgate.routing.file.problems import InvalidRouting, render_text
from tollgate.routing.routing_file import Routing
from tollgate.routing.scalars import MODEL_SLUG
from tollgate.settings import Settings


@click.group()
def models() -> None:
    """Add a model to a routing file."""


@models.command(epilog="Example: tollgate models add openai/gpt-4.1-nano --max-output 32768")
@click.argument("model")
@routing_file
@click.option("--provider", help="Provider of the model; required if several have a price.")
@click.option("--upstream", help="The provider's name for the model, if different.")
@click.option("--name", help="Display name of the model.")
@click.option(
    "--context", type=click.IntRange(1), help="Context in tokens; published value by default."
)
@click.option(
    "--max-output",
    type=click.IntRange(1),
    required=True,
    help="Maximum number of tokens in an answer.",
)
@click.option(
    "--input",
    "takes",
    multiple=True,
    default=("text",),
    show_default=True,
    type=click.Choice(get_args(Modality)),
    help="An input modality of the model; may be repeated.",
)
@click.option(
    "--supports",
    multiple=True,
    type=click.Choice(get_args(Capability)),
    help="A capability of the model; may be repeated.",
)
def add(
    model: str,
    file: Path,
    *,
    provider: str | None,
    upstream: str | None,
    name: str | None,
    context: int | None,
    max_output: int,
    takes: tuple[Modality, ...],
    supports: tuple[Capability, ...],
) -> None:
    """Insert MODEL, an author/slug, into FILE with its price in genai-prices, and show the change.

    Limits and capabilities are options, because genai-prices lacks them. Nothing is written if the
    file would have errors.
    """
    today = utc_today()
    if not re.fullmatch(MODEL_SLUG, model):
        raise click.UsageError(f"{model}: write author/model, in lower case")
    try:
        routing = load(file, variables=Settings().variables)
        chosen, its_name, price = _offer(
            routing, model, provider=provider, upstream=upstream, today=today
        )
        tokens = price.context if context is None else context
        if tokens is None:
            raise Unpublished(f"{SOURCE} has no context for {its_name}: use --context")
        entry = ModelEntry(
            slug=model,
            name=name or model.partition("/")[2],
            context=tokens,
            max_output=max_output,
            input=takes,
            supports=supports,
            provider=chosen,
            upstream=its_name,
            published=price,
        )
        _write(file, insert_model(file, entry), today)
    except InvalidRouting as invalid:
        raise click.ClickException(f"{file.as_posix()} must not be used.\n{invalid}") from invalid
    except (Unplaceable, Unpublished) as refused:
        raise click.ClickException(str(refused)) from refused
    if price.unstatable:
        click.echo(
            f"Left out, because a routing file has no such rate: {', '.join(price.unstatable)}"
        )
    click.echo("Run `tollgate permissions`, review all changes, and commit them together.")


def _offer(
    routing: Routing, model: str, *, provider: str | None, upstream: str | None, today: date
) -> tuple[str, str, Published]:
    """Return a model's provider, upstream name and price; raise Unpublished unless one matches."""
    if provider is not None and provider not in routing.providers:
        raise click.ClickException(
            f"the file has no provider {provider}: {', '.join(sorted(routing.providers))}"
        )
    chosen = [provider] if provider else list(routing.providers)
    names = (upstream,) if upstream else _likely_names(model)
    offers = []
    for slug in chosen:
        for its_name in names:
            with suppress(Unpublished):
                price = find_published_price(routing.providers[slug], its_name, today)
                if upstream or price.upstream == its_name:
                    offers.append((slug, its_name, price))
    match offers:
        case [offer]:
            return offer
        case [] if provider and not is_published(routing.providers[provider]):
            raise Unpublished(
                f"{SOURCE} has no prices for {provider}: add {model} to the file by hand, "
                "with the page that states the price as `source`"
            )
        case []:
            raise Unpublished(
                f"{SOURCE} has no price for {model} at {provider or 'any provider in the file'}: "
                "state the provider's name for the model with --upstream"
            )
        case _:
            places = ", ".join(f"{slug} ({its_name})" for slug, its_name, _ in offers)
            raise Unpublished(f"{model} has a price at several providers, choose one: {places}")


def _likely_names(model: str) -> tuple[str, ...]:
    """Return likely upstream names for a model: with or without the author, and with dots or
    hyphens.
    """
    short = model.partition("/")[2]
    return tuple(dict.fromkeys((model, short, short.replace(".", "-"))))


def _write(file: Path, content: str, today: date) -> None:
    """Replace the file and print the change; raise InvalidRouting if the result has errors."""
    before = file.read_text(encoding="utf-8")
    written = file.with_name(f"{file.name}.part")
    written.write_text(content, encoding="utf-8", newline="")
    try:
        inspection = inspect(written, dev=True, today=today, variables=Settings().variables)
        problems = [
            replace(problem, file=file.as_posix())
            if problem.file == written.as_posix()
            else problem
            for problem in inspection.problems
        ]
        if inspection.errors:
            raise InvalidRouting([problem for problem in problems if problem.severity == "error"])
        written.replace(file)
    finally:
        written.unlink(missing_ok=True)
    for problem in problems:
        if not problem.comes_with_time:
            click.echo(render_text(problem))
    change = unified_diff(
        before.splitlines(), content.splitlines(), file.as_posix(), file.as_posix(), lineterm=""
    )
    click.echo("\n".join(change))
