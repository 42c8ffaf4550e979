"""Text output for a bill: its cost lines, then the gateway's notes on it."""

import textwrap
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, Final

from tollgate.cli.tables import dollars
from tollgate.web.records.bill_notes import ITEM_NAMES, TOKEN_NAMES

# Ids of the request in the logs of AWS services.
_PLATFORMS: Final = {"api_gateway_request_id": "API Gateway", "lambda_request_id": "Lambda"}
_WIDTH: Final = 100


def explain_bill(record: Any) -> list[str]:
    """Render a generation's bill with its notes, each line at most 100 columns wide."""
    names = [_name_line(line) for line in record["cost_lines"]]
    amounts = [_amounts(line) for line in record["cost_lines"]]
    name_width, width = (max(map(len, ("", *texts))) for texts in (names, amounts))
    lines = [
        f"  {name:<{name_width}}  {amount:>{width}}  {Decimal(line['cost']):>12.9f}"
        for name, amount, line in zip(names, amounts, record["cost_lines"], strict=True)
    ]
    if refunded := Decimal(record["refunded"]):
        net = dollars(Decimal(record["total_cost"]) - refunded)
        lines.append(f"  refunded {dollars(refunded)}, which leaves {net}")
    ids = [
        f"{name} request {record[field]}" for field, name in _PLATFORMS.items() if record.get(field)
    ]
    notes = [*(record["notes"] or ()), *ids]
    payers = _wrap(", ".join(f"{name} {label}" for name, label in record["labels"].items()))
    said = (text for note in notes for text in _wrap(note))
    return [*_headline(record), *payers, *lines, *said]


def _wrap(note: str) -> list[str]:
    return textwrap.wrap(
        note, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )


def _name_line(line: Any) -> str:
    name: str = ITEM_NAMES.get(line["item"], line["item"])
    name = f"{name}, {tier}" if (tier := line.get("service_tier")) else name
    return f"{number} {name}" if (number := line.get("round")) else name


def _headline(record: Any) -> Iterator[str]:
    """Yield the amount and the provider that served, then the key, the time and the catalog."""
    served = f"{record['model']} via {record['provider_name']}" if record["model"] else "not served"
    first = record["first_token_ms"]
    times = [] if first is None else [f"TTFT {_seconds(first)}"]
    yield f"{dollars(record['total_cost'])}  {served}"
    yield "  ".join(
        (
            f"  key {record['key_name'] or record['key_id']}",
            record["created_at"],
            ", ".join([*times, _seconds(record["latency_ms"])]),
            f"catalog {record['catalog_sha'][:7]}",
        )
    )


def _amounts(line: Any) -> str:
    if line["item"] in TOKEN_NAMES:
        return f"{line['quantity']:,} × {dollars(line['usd_per_million'], 2)}/M"
    return f"{line['quantity']:,} × {dollars(Decimal(line['usd_per_million']) / 1000, 2)}/1k"


def _seconds(milliseconds: int) -> str:
    return f"{Decimal(milliseconds) / 1000:.1f} s"
