"""`tollgate generations`: records, bills and content of generations."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any, Final

import click

from tollgate.cli.gateway.bill import explain_bill
from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api, Query
from tollgate.cli.options import since_moment, with_moments
from tollgate.cli.tables import GrowingTable, OutputStyle, as_json, exact, show
from tollgate.core.clock import SystemClock
from tollgate.core.dotted_names import DottedName

_GENERATION_SHAPE: Final = DottedName[type[Any]](
    "tollgate.web.records.generation_shapes:GenerationObject"
)
_COLUMNS: Final = ("id", "created_at", "status", "usd", "model", "key", "tokens", "ms", "provider")
_TAIL_EVERY_S: Final = 2.0
_TAIL_PAGE: Final = 200
# Longer than any generation lasts.
_TAIL_BACK: Final = "1h"
# Column widths are fixed, because the first row is printed before later rows are known.
_TAIL_WIDTHS: Final = {
    "id": 19,
    "created_at": 14,
    "status": 10,
    "usd": 12,
    "model": 30,
    "key": 20,
    "tokens": 13,
    "ms": 6,
    "provider": 10,
}
_EXPORT_PAGE: Final = 500


@click.group()
def generations() -> None:
    """List the generations in the workspace, explain bills, show content."""


@generations.command(
    "ls", epilog="Example: tollgate generations ls --since 12h --outcome error --team search"
)
@click.option(
    "--since",
    metavar="AGO",
    help="7d, 12h, 2026-11-21 or 2026-11-21T12:00:00Z; by default a day before --until.",
)
@click.option("--until", metavar="AGO", help="Same forms as --since; now by default.")
@click.option("--model", help="Model that served, or the requested model, route or alias.")
@click.option("--provider")
@click.option("--key", help="Name or id of a key.")
@click.option("--team", metavar="ID", help="Team that the key belonged to.")
@click.option("--member", metavar="ID", help="Member that the key belonged to.")
@click.option("--outcome", type=click.Choice(["ok", "error", "cancelled", "lost"]))
@click.option("--cost-min", metavar="USD")
@click.option("--user", help="End user, as given in the request.")
@click.option("--label", multiple=True, metavar="NAME:VALUE")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@calls_gateway
def list_generations(api: Api, style: OutputStyle, *, limit: int, **query: Any) -> None:
    """List generations, newest first."""
    selection = {**with_moments(query), "limit": min(limit, 1000)}
    found = []
    for record in api.pages("/generations", selection, "cursor"):
        found.append(record)
        if len(found) == limit:
            break
    rows = [_row(record) for record in found]
    show(rows, _COLUMNS, style, amounts=("usd",), data=found, shape=_GENERATION_SHAPE)


@generations.command(
    "export", epilog="Example: tollgate generations export --since 7d > traffic.jsonl"
)
@click.option(
    "--since", default="7d", show_default=True, metavar="AGO", help="7d, 12h or a timestamp."
)
@calls_gateway
def export_generations(api: Api, style: OutputStyle, since: str) -> None:
    """Write generations as JSON lines, newest first, for `tollgate plan --traffic`."""
    if style == "csv":
        raise click.UsageError("--csv does not apply: an export is JSON lines.")
    selection: Query = {"since": since_moment(since), "limit": _EXPORT_PAGE}
    for record in api.pages("/generations", selection, "cursor"):
        click.echo(as_json(record, indent=None))


@generations.command("show", epilog="Example: tollgate generations show gen-5g0DOGidSaW4fTg")
@click.argument("generation_id")
@calls_gateway
def show_generation(api: Api, style: OutputStyle, generation_id: str) -> None:
    """Explain a generation's bill line by line."""
    record = api.get("/generation", {"id": generation_id, "notes": "true"})["data"]
    if style == "auto":
        click.echo("\n".join(explain_bill(record)))
    elif style == "json":
        click.echo(as_json(record))
    else:
        show([_row(record)], _COLUMNS, style, data=[record], shape=_GENERATION_SHAPE)


@generations.command("tail", epilog="Example: tollgate generations tail --json")
@calls_gateway
def tail_generations(api: Api, style: OutputStyle) -> None:
    """Print generations as they end, until Ctrl-C: a table, TSV in a pipe, or JSON lines."""
    if style == "csv":
        raise click.UsageError(
            "--csv does not apply: a tail is TSV in a pipe, or JSON lines with --json."
        )
    table = None if style == "json" else GrowingTable(_TAIL_WIDTHS)

    async def follow() -> None:
        async for record in _follow(api):
            if table is None:
                click.echo(as_json(record, indent=None))
            else:
                table.add(_row(record))

    # Users end a tail with Ctrl-C. An event loop that is interrupted while it is being created
    # warns about unclosed resources, so the whole tail runs in one loop.
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(follow())


async def _follow(api: Api) -> AsyncIterator[Any]:
    """Yield each generation that ends from now on; the iteration never stops."""
    clock = SystemClock()
    # Generations are listed by start time, so a generation that ends now may be further back in the
    # list.
    since = since_moment(_TAIL_BACK)
    seen: set[str] = set()
    first = True
    while True:
        new, old_in_a_row = [], 0
        for record in api.pages("/generations", {"since": since, "limit": _TAIL_PAGE}, "cursor"):
            if record["id"] in seen:
                old_in_a_row += 1
                if old_in_a_row == _TAIL_PAGE:
                    break
            else:
                old_in_a_row = 0
                new.append(record)
        seen.update(record["id"] for record in new)
        if not first:
            for record in reversed(new):
                yield record
        first = False
        await clock.sleep(_TAIL_EVERY_S)


@generations.command("content", epilog="Example: tollgate generations content gen-5g0DOGidSaW4fTg")
@click.argument("generation_id")
@calls_gateway
def show_content(api: Api, style: OutputStyle, generation_id: str) -> None:
    """Print a generation's request and answer as JSON, if its key stores content."""
    if style == "csv":
        raise click.UsageError("--csv does not apply: content is JSON.")
    click.echo(as_json(api.get("/generation/content", {"id": generation_id})["data"]))


def _row(record: Any) -> dict[str, str]:
    return {
        "id": record["id"],
        "created_at": record["created_at"],
        "status": record["error_code"] or record["status"],
        # A failed generation has no model that served, so the requested model is shown.
        "model": record["model"] or record["requested_model"],
        "provider": record["provider_name"] or "",
        "key": record["key_name"] or record["key_id"],
        "tokens": f"{record['tokens_prompt']}+{record['tokens_completion']}",
        "usd": exact(record["total_cost"]),
        "ms": str(record["latency_ms"]),
    }
