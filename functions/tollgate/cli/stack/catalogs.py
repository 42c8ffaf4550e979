"""`tollgate catalogs`: a stack's published catalogs and their prices."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TypeVar

import click
import msgspec

from tollgate.cli.options import region, routing_option, since_moment, stack
from tollgate.cli.stack.aws_account import AccountError, AwsAccount
from tollgate.cli.stack.canary_state import describe_canary, is_of
from tollgate.cli.stack.catalog_prices import (
    ServedPeriod,
    describe_prices,
    list_price_rows,
    list_served_periods,
)
from tollgate.cli.tables import OutputStyle, as_json, show
from tollgate.core.clock import SystemClock
from tollgate.core.errors import GatewayError
from tollgate.core.routing.canary import Look
from tollgate.core.routing.publication import Publication, Publications
from tollgate.routing.file.compile import compile_routing
from tollgate.routing.file.load import inspect
from tollgate.routing.file.permissions import NotPermissible
from tollgate.routing.routing_file import Routing
from tollgate.settings import Settings
from tollgate.web.http.csv_columns import cell_text
from tollgate.web.shapes import moment
from tollgate.wiring.stores import wire_stores

_COLUMNS: Final = ("revision", "at", "live", "canary", "commit", "by")
_PRICE_COLUMNS: Final = (
    "model",
    "provider",
    "when",
    "input",
    "output",
    "cache_read",
    "cache_write",
    "others",
    "checked",
    "upstream",
    "source",
)
_SHA_LENGTH: Final = 64
_SHA_SHOWN: Final = 12
_SHA_LENGTH_MIN: Final = 7
_Result = TypeVar("_Result")
_as_json = click.option("--json", "style", flag_value="json", help="Print JSON.")


@click.group(invoke_without_command=True, epilog="Example: tollgate catalogs --json")
@stack
@region
@_as_json
@click.pass_context
def catalogs(ctx: click.Context, stack: str, region: str | None, style: str | None) -> None:
    """List published catalogs, latest first; `show` prints the prices in a catalog."""
    if ctx.invoked_subcommand is not None:
        # These options are accepted before and after the subcommand.
        defaults = {"stack": stack, "region": region, "style": style}
        ctx.default_map = {ctx.invoked_subcommand: defaults}
        return

    async def read(store: Publications, _: AwsAccount) -> tuple[Sequence[Publication], Look | None]:
        return await store.history(), await store.look()

    history, look = run_on_stack(stack, region, read)
    publications = [
        msgspec.to_builtins(publication)
        | {"at": _text(publication.moved_s)}
        | ({"look": msgspec.to_builtins(look)} if look and is_of(look, publication) else {})
        for publication in history
    ]
    rows = [_row(publication) for publication in history]
    show(rows, _COLUMNS, "json" if style else "auto", data=publications)
    for line in () if style else describe_canary(history, look):
        click.echo(line, err=True)


@catalogs.command("show", epilog="Example: tollgate catalogs show dfe44ae77850 --model 'openai/*'")
@click.argument("sha")
@click.option("--model", metavar="GLOB", default="*", help="Only these models.")
@click.option("--at", metavar="TIME", help="Only prices at this time: a bill's created_at, or 7d.")
@routing_option(
    "--file", "Read instead of the stack if its catalog is SHA, as for a local gateway."
)
@stack
@region
@_as_json
def show_catalog(
    sha: str,
    *,
    model: str,
    at: str | None,
    file: Path,
    stack: str,
    region: str | None,
    style: OutputStyle | None,
) -> None:
    """Show the prices in the catalog SHA; a bill names the SHA, which may be abbreviated.

    A row with conditions replaces single rates of the row without conditions; if several rows
    apply, the last row counts. Rates are dollars per million tokens, or per unit under `others`.
    """
    check_length(sha)
    at_s = None if at is None else _seconds(at)

    async def read(
        store: Publications, _: AwsAccount
    ) -> tuple[str, bytes, tuple[ServedPeriod, ...]]:
        history = await store.history()
        full_sha = _find(sha, history)
        return full_sha, await store.catalog(full_sha), list_served_periods(history, full_sha)

    at_hand = _compiled_here(sha, file)
    full_sha, content, periods = at_hand or run_on_stack(stack, region, read)
    try:
        routing = Routing.model_validate_json(content, strict=True)
    except ValueError as unreadable:
        raise click.ClickException(
            f"{short_sha(full_sha)} was compiled by another version of Tollgate: use that version."
        ) from unreadable
    if style == "json":
        prices = describe_prices(routing, model, at_s)
        served = [period.as_object(_text) for period in periods]
        click.echo(as_json({"sha": full_sha, "served": served, "endpoints": prices}))
        return
    click.echo(f"Catalog {full_sha}{f', of {file.as_posix()} here' if at_hand else ''}", err=True)
    for period in periods:
        click.echo(f"  {period.describe(_text)}", err=True)
    show(list_price_rows(routing, model, at_s), _PRICE_COLUMNS, "auto")


def _find(sha: str, history: Sequence[Publication]) -> str:
    """Return the full form of an abbreviated SHA; raise ClickException unless one matches."""
    found = {
        known
        for each in history
        for known in (each.live, each.candidate, each.previous)
        if known is not None and known.startswith(sha)
    }
    if not found and len(sha) == _SHA_LENGTH:
        # The catalog may be older than the history, because catalogs are stored for as long as
        # bills that refer to them.
        return sha
    if len(found) != 1:
        listed = f": {', '.join(sorted(found))}" if found else "; `tollgate catalogs` lists them"
        many = "more than one catalog" if found else "no published catalog"
        raise click.ClickException(
            f"{sha} names {many}{listed}. If the catalog was deployed but never published, check "
            "out the commit with its routing file, or give --file."
        )
    return found.pop()


def _compiled_here(sha: str, file: Path) -> tuple[str, bytes, tuple[ServedPeriod, ...]] | None:
    """Return a local file's catalog if its SHA matches, with or without development files."""
    if not file.is_file():
        return None
    found = inspect(file, dev=True, variables=Settings().variables)
    for routing in filter(None, (found.production, found.routing)):
        compiled = compile_routing(routing)
        if compiled.sha.startswith(sha):
            return compiled.sha, compiled.content, ()
    return None


def _seconds(text: str) -> float:
    try:
        at = datetime.fromisoformat(since_moment(text))
    except ValueError as unreadable:
        raise click.UsageError(
            f"--at {text!r}: give 7d, 12h, 2026-11-21 or 2026-11-21T12:00:00Z."
        ) from unreadable
    return (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()


def _row(publication: Publication) -> dict[str, str]:
    candidate = publication.candidate
    return {
        "revision": str(publication.revision),
        "at": _text(publication.moved_s),
        "live": short_sha(publication.live),
        "canary": f"{short_sha(candidate)} {publication.percent} %"
        if candidate
        else ("withdrawn" if publication.withdrawn else ""),
        "commit": short_commit(publication.commit or ""),
        "by": publication.by,
    }


def short_commit(commit: str) -> str:
    """Return a commit's first characters, with the `+` of files that were not committed."""
    return f"{short_sha(commit)}{'+' if commit.endswith('+') else ''}"


def _text(at_s: int) -> str:
    return cell_text(moment(at_s))


def run_on_stack(
    stack: str,
    region: str | None,
    work: Callable[[Publications, AwsAccount], Awaitable[_Result]],
) -> _Result:
    """Call `work` with a stack's publications; turn expected errors into ClickException."""

    async def call(account: AwsAccount) -> _Result:
        settings = account.settings(account.stack(stack))
        async with aclosing(wire_stores(settings, SystemClock())) as stores:
            return await work(stores.publications, account)

    try:
        return asyncio.run(call(AwsAccount(region)))
    except (AccountError, GatewayError, NotPermissible) as error:
        raise click.ClickException(str(error)) from error


def check_length(sha: str) -> None:
    """Raise UsageError for a SHA with too few characters."""
    if len(sha) < _SHA_LENGTH_MIN:
        raise click.UsageError(f"{sha!r}: give at least {_SHA_LENGTH_MIN} characters of the sha.")


def short_sha(sha: str) -> str:
    """Return the first characters of a SHA, for printing."""
    return sha[:_SHA_SHOWN]
