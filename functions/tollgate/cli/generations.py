"""`tollgate generations`: what was asked, who served it, and why it cost what it cost."""

import asyncio
from decimal import Decimal
from typing import Any, Final

import click

from tollgate.cli.http import Api
from tollgate.cli.tables import Style, as_json, calls_gateway, dollars, exact, show
from tollgate.core.clock import SystemClock

_COLUMNS: Final = ("id", "created_at", "status", "model", "provider", "key", "tokens", "usd", "ms")
_ITEMS: Final = {
    "input": "fresh input",
    "input_audio": "audio input",
    "cache_read": "cache read",
    "cache_write_5m": "cache write 5m",
    "cache_write_1h": "cache write 1h",
    "output_audio": "audio output",
}
# What is counted by the piece reads better per thousand than per million.
_TOKENS: Final = {*_ITEMS, "output"}
_TAIL_EVERY_S: Final = 2.0


@click.group()
def generations() -> None:
    """Generations of the workspace."""


@generations.command("ls")
@click.option("--since", metavar="MOMENT", help="2026-11-21T00:00:00Z; a day ago if none is said.")
@click.option("--until", metavar="MOMENT")
@click.option("--model")
@click.option("--provider")
@click.option("--key", "key_id", help="Id of a key.")
@click.option("--outcome", type=click.Choice(["ok", "error", "cancelled", "lost"]))
@click.option("--cost-min", metavar="USD")
@click.option("--label", multiple=True, metavar="NAME:VALUE")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@calls_gateway
def list_generations(
    api: Api, style: Style, *, limit: int, key_id: str | None, **query: Any
) -> None:
    """List generations, newest first."""
    asked = {**query, "key": key_id, "limit": min(limit, 1000)}
    found = []
    for record in api.pages("/generations", asked, "cursor"):
        found.append(record)
        if len(found) == limit:
            break
    show([_row(record) for record in found], _COLUMNS, style, data=found)


@generations.command("show")
@click.argument("generation_id")
@calls_gateway
def show_generation(api: Api, style: Style, generation_id: str) -> None:
    """Explain the bill of one generation, line by line."""
    record = api.get("/generation", {"id": generation_id})["data"]
    if style == "auto":
        click.echo("\n".join(_explained(record)))
    elif style == "json":
        click.echo(as_json(record))
    else:
        show([_row(record)], _COLUMNS, style)


@generations.command("tail")
@calls_gateway
def tail_generations(api: Api, style: Style) -> None:
    """Print generations as they end, until Ctrl-C."""
    seen: set[str] = set()
    first, clock = True, SystemClock()
    while True:
        page = api.get("/generations", {"limit": 50})["data"]
        for record in reversed(page):
            if record["id"] not in seen and not first:
                row = _row(record)
                line = as_json(record) if style == "json" else "\t".join(row.values())
                click.echo(line)
        seen = {record["id"] for record in page}
        first = False
        asyncio.run(clock.sleep(_TAIL_EVERY_S))


def _row(record: Any) -> dict[str, str]:
    return {
        "id": record["id"],
        "created_at": record["created_at"],
        "status": record["error_code"] or record["status"],
        "model": record["model"] or "",
        "provider": record["provider_name"] or "",
        "key": record["key_name"] or record["key_id"],
        "tokens": f"{record['tokens_prompt']}+{record['tokens_completion']}",
        "usd": exact(record["total_cost"]),
        "ms": str(record["latency_ms"]),
    }


def _explained(record: Any) -> list[str]:
    """The bill as a person reads it: what it came to, each line, and what was tried."""
    lines = [_headline(record)]
    notes = _notes(record)
    width = max((len(_amounts(line)) for line in record["cost_lines"]), default=0)
    for index, line in enumerate(record["cost_lines"]):
        name = _ITEMS.get(line["item"], line["item"])
        amounts = _amounts(line).rjust(width)
        note = f"        {notes[index]}" if index < len(notes) else ""
        lines.append(f"  {name:<15} {amounts}  {Decimal(line['cost']):>12.9f}{note}")
    lines += [f"  {note}" for note in notes[len(record["cost_lines"]) :]]
    return lines


def _headline(record: Any) -> str:
    served = f"{record['model']} via {record['provider_name']}" if record["model"] else "nobody"
    first = record["first_token_ms"]
    times = [] if first is None else [f"TTFT {_seconds(first)}"]
    return "  ".join(
        (
            dollars(record["total_cost"]),
            served,
            f"key {record['key_name'] or record['key_id']}",
            record["created_at"],
            ", ".join([*times, _seconds(record["latency_ms"])]),
            f"catalog {record['catalog_sha'][:7]}",
        )
    )


def _notes(record: Any) -> list[str]:
    """What stands beside the lines: who was tried, and what is not as usual."""
    notes = []
    if record["requested_model"] != record["model"]:
        rule = f", rule {record['rule']}" if record.get("rule") else ""
        notes.append(f"asked for {record['requested_model']}{rule}")
    notes += [
        f"attempt {number} {attempt['model']} via {attempt['provider_name']}: "
        f"{attempt['status'] or ''} {attempt['error']}, $0".replace(":  ", ": ")
        for number, attempt in enumerate(record["provider_responses"], start=1)
        if attempt["error"]
    ]
    if record["status"] != "ok":
        notes.append(f"{record['status']}: {record['error_code'] or 'the caller left'}")
    if record["tokens_reasoning"]:
        notes.append(f"of the output, {record['tokens_reasoning']:,} are reasoning")
    if record["usage_source"] == "estimated":
        notes.append("the provider did not count; this is an estimate")
    return notes


def _amounts(line: Any) -> str:
    if line["item"] in _TOKENS:
        return f"{line['quantity']:,} × ${Decimal(line['usd_per_million']):.2f}/M"
    return f"{line['quantity']:,} × ${Decimal(line['usd_per_million']) / 1000:.2f}/1k"


def _seconds(milliseconds: int) -> str:
    return f"{Decimal(milliseconds) / 1000:.1f} s"
