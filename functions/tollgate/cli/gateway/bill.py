"""Text output for a bill: cost lines, failed attempts, cache savings and unusual quantities."""

import textwrap
from collections.abc import Iterator, Sequence
from decimal import Decimal
from statistics import median
from typing import Any, Final

from tollgate.cli.tables import dollars

_TOKEN_NAMES: Final = {
    "input": "fresh input",
    "input_audio": "audio input",
    "cache_read": "cache read",
    "cache_read_audio": "cached audio",
    "cache_write_5m": "cache write 5m",
    "cache_write_1h": "cache write 1h",
    "output_audio": "audio output",
    "input_image": "image input",
    "output_image": "image output",
    "character": "characters",
}
_NAMES: Final = {
    **_TOKEN_NAMES,
    "provider_web_search": "provider search",
    "unpriced_web_search": "provider search",
    "audio_second": "seconds of sound",
}
# Items priced per million; other units, such as searches, are shown per thousand.
_TOKENS: Final = {*_TOKEN_NAMES, "output"}
# Ids of the request in the logs of AWS services.
_PLATFORMS: Final = {"api_gateway_request_id": "API Gateway", "lambda_request_id": "Lambda"}
# The minimum number of bills that a median needs, and the multiple of the median that counts as
# unusual.
_OTHERS_MIN: Final = 10
_SURPRISING_TIMES: Final = 2
_CAUSES_MAX: Final = 2
_WIDTH: Final = 100


def explain_bill(record: Any, earlier: Sequence[Any]) -> list[str]:
    """Render a generation's bill with notes, each line at most 100 columns wide.

    `earlier` are previous generations of its key.
    """
    names = [_name_line(line) for line in record["cost_lines"]]
    amounts = [_amounts(line) for line in record["cost_lines"]]
    name_width, width = (max(map(len, ("", *texts))) for texts in (names, amounts))
    lines = [
        f"  {name:<{name_width}}  {amount:>{width}}  {Decimal(line['cost']):>12.9f}"
        for name, amount, line in zip(names, amounts, record["cost_lines"], strict=True)
    ]
    if refunded := Decimal(record.get("refunded") or 0):
        net = dollars(Decimal(record["total_cost"]) - refunded)
        lines.append(f"  refunded {dollars(refunded)}, which leaves {net}")
    notes = (
        *_explain_attempts(record),
        *_explain_runs(record),
        *_explain_figures(record),
        *_explain_surprise(record, earlier),
        *(
            f"{name} request {record[field]}"
            for field, name in _PLATFORMS.items()
            if record.get(field)
        ),
    )
    return [*_headline(record), *lines, *(text for note in notes for text in _wrap(note))]


def _wrap(note: str) -> list[str]:
    return textwrap.wrap(
        note, _WIDTH, initial_indent="  ", subsequent_indent="    ", break_on_hyphens=False
    )


def _name_line(line: Any) -> str:
    name: str = _NAMES.get(line["item"], line["item"])
    return f"{number} {name}" if (number := line.get("round")) else name


def _headline(record: Any) -> Iterator[str]:
    """Yield the amount and who served, then the key, the time and the catalog."""
    served = f"{record['model']} via {record['provider_name']}" if record["model"] else "nobody"
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


def _explain_attempts(record: Any) -> Iterator[str]:
    """Yield the requested model (if another model served), each failed attempt, and the final
    failure.
    """
    if record["requested_model"] != record["model"]:
        rule = f", rule {record['rule']}" if record.get("rule") else ""
        yield f"requested {record['requested_model']}{rule}"
    for number, attempt in enumerate(record["provider_responses"], start=1):
        if attempt["error"]:
            failure = f"{attempt['status'] or ''} {attempt['error']}".strip()
            served = f"{attempt['model']} via {attempt['provider_name']}"
            paid = Decimal(attempt["operator_cost"])
            operator_cost = f", {dollars(paid)} paid by the operator" if paid else ""
            yield f"attempt {number} {served}: {failure}, $0{operator_cost}"
            if words := attempt["provider_words"]:
                yield f"  {attempt['provider_name']} answered: {words}"
    if record["status"] != "ok":
        yield f"{record['status']}: {record['error_code'] or 'the client disconnected'}"


def _explain_runs(record: Any) -> Iterator[str]:
    """Yield the number of rounds, then each run of a server tool."""
    if rounds := record.get("rounds"):
        yield f"{len(rounds)} rounds; each line begins with the number of its round"
    for run in record.get("server_tool_runs", ()):
        engine = f" by {run['engine']}" if run["engine"] else ""
        outcome = f": {run['error']}" if run["error"] else ""
        yield f"round {run['round']} ran {run['tool']}{engine}, {_seconds(run['latency'])}{outcome}"


def _explain_figures(record: Any) -> Iterator[str]:
    """Yield notes on cache savings, reasoning, unpriced searches and unreliable usage."""
    if (saved := _cache_saved_usd(record)) > 0:
        yield f"cache saved {dollars(saved)}"
    if record["tokens_reasoning"]:
        yield f"{record['tokens_reasoning']:,} of the output tokens are reasoning"
    if _quantity(record, "unpriced_web_search"):
        yield "the provider searched the web, but the catalog has no price for searches"
    if withheld := record.get("withheld_tool_calls"):
        yield f"{withheld} tool calls were billed but not delivered: the caller allowed only one"
    if record["usage_source"] == "estimated":
        yield "the provider reported no usage; this is an estimate"
    if record["usage_source"] == "bounded":
        yield (
            "the provider reported more usage than the answer can have; the upper bound is billed"
        )


def _cache_saved_usd(record: Any) -> Decimal:
    """Return the savings from cached tokens, compared with uncached input."""
    rates = {
        (line.get("round"), line["item"]): Decimal(line["usd_per_million"])
        for line in record["cost_lines"]
    }
    saved = Decimal(0)
    for line in record["cost_lines"]:
        fresh = rates.get((line.get("round"), "input"))
        if line["item"] == "cache_read" and fresh is not None:
            saved += (fresh - Decimal(line["usd_per_million"])) * int(line["quantity"])
    return saved / 1_000_000


def _explain_surprise(record: Any, earlier: Sequence[Any]) -> Iterator[str]:
    """Yield a sentence that compares an unusual cost with the key's earlier requests.

    A cost is unusual if it is at least twice the median of at least ten requests.
    """
    if len(earlier) < _OTHERS_MIN or not record["cost_lines"]:
        return
    cost = Decimal(record["total_cost"])
    usual = Decimal(median(Decimal(other["total_cost"]) for other in earlier))
    if not usual or (times := cost / usual) < _SURPRISING_TIMES:
        return
    causes = ", ".join(_compare_items(record, earlier))
    shares = ", ".join(_shares(record))
    yield (
        f"why so much: {times:.1f} × the median of this key's last {len(earlier)} requests"
        f" ({dollars(usual)}): {causes}{f'; {shares}' if shares else ''}"
    )


def _compare_items(record: Any, earlier: Sequence[Any]) -> Iterator[str]:
    """Yield the two items that add most to the cost, each with its usual cost."""

    def extra_cost(item: str) -> Decimal:
        return _cost(record, item) - usual[item]

    items = {line["item"] for line in record["cost_lines"]}
    usual = {item: Decimal(median(_cost(other, item) for other in earlier)) for item in items}
    for item in sorted(items, key=lambda item: (-extra_cost(item), item))[:_CAUSES_MAX]:
        if extra_cost(item) > 0:
            name = _NAMES.get(item, item)
            yield f"{name} {dollars(_cost(record, item))} (usually {dollars(usual[item])})"


def _shares(record: Any) -> Iterator[str]:
    """Yield the shares of cached input, of reasoning, and of the rounds that called tools."""
    if cached := record["tokens_cached_prompt"]:
        yield f"{100 * cached // record['tokens_prompt']} % of the prompt was cached"
    if (reasoning := record["tokens_reasoning"]) and record["tokens_completion"]:
        yield f"{100 * reasoning // record['tokens_completion']} % of the output was reasoning"
    if rounds := record.get("rounds"):
        later = [line for line in record["cost_lines"] if (line.get("round") or 1) > 1]
        share = sum(Decimal(line["cost"]) for line in later) / Decimal(record["total_cost"])
        yield f"{100 * share:.0f} % was spent after the first of {len(rounds)} rounds with tools"


def _cost(record: Any, item: str) -> Decimal:
    costs = (Decimal(line["cost"]) for line in record["cost_lines"] if line["item"] == item)
    return sum(costs, Decimal(0))


def _quantity(record: Any, item: str) -> int:
    return sum(line["quantity"] for line in record["cost_lines"] if line["item"] == item)


def _amounts(line: Any) -> str:
    if line["item"] in _TOKENS:
        return f"{line['quantity']:,} × {dollars(line['usd_per_million'], 2)}/M"
    return f"{line['quantity']:,} × {dollars(Decimal(line['usd_per_million']) / 1000, 2)}/1k"


def _seconds(milliseconds: int) -> str:
    return f"{Decimal(milliseconds) / 1000:.1f} s"
