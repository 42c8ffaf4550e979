"""Sentences about a generation's bill, which the command line and the console show."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from statistics import median
from typing import Final

from tollgate.core.money.amounts import usd
from tollgate.core.records.generation import BillLine, GenerationRecord
from tollgate.core.request import ProviderSort
from tollgate.core.routing.endpoint_status import Speed

# The minimum number of requests that a median needs, and the multiple of the median that counts as
# unusual.
OTHERS_MIN: Final = 10
OTHERS_MAX: Final = 200
_SURPRISING_TIMES: Final = 2
_CAUSES_MAX: Final = 2
_PLACES: Final = 5
_MILLION: Final = 1_000_000
# Names of items that are not plain words; items of tokens are priced per million.
TOKEN_NAMES: Final = {
    "input": "fresh input",
    "input_audio": "audio input",
    "cache_read": "cache read",
    "cache_read_audio": "cached audio",
    "cache_write_5m": "cache write 5m",
    "cache_write_1h": "cache write 1h",
    "output": "output",
    "output_audio": "audio output",
    "input_image": "image input",
    "output_image": "image output",
    "character": "characters",
}
ITEM_NAMES: Final = {
    **TOKEN_NAMES,
    "provider_web_search": "provider search",
    "unpriced_web_search": "provider search",
    "audio_second": "seconds of sound",
    "video_second": "seconds of video",
    "reused_answer": "reused answer",
}


def list_notes(record: GenerationRecord, earlier: Sequence[GenerationRecord]) -> list[str]:
    """Return the notes on a generation; `earlier` are previous generations of its key."""
    return [
        *_explain_age(record),
        *_explain_rules(record),
        *_explain_attempts(record),
        *_explain_reuse(record),
        *_explain_shadow(record),
        *_explain_judgements(record),
        *_explain_runs(record),
        *_explain_figures(record),
        *_explain_surprise(record, earlier),
    ]


def _explain_age(record: GenerationRecord) -> Iterator[str]:
    """Yield a remark if only the bill is left."""
    if record.is_bill:
        yield "the record has expired; this is the bill"


def _explain_rules(record: GenerationRecord) -> Iterator[str]:
    """Yield the rules that chose the models and the order of the endpoints."""
    trace = record.trace
    if trace.is_candidate:
        yield "a candidate catalog served this key"
    if trace.bend:
        yield f"bent by the budget: {trace.bend}"
    for quota in trace.quotas_used_up:
        yield f"the quota {quota} was used up, so its models were left out"
    if trace.sorted_by is not None:
        figures = (
            f"{name} {_figure(speed, trace.sorted_by)} ({speed.answers} answers)"
            for name, speed in trace.speeds.items()
        )
        yield f"endpoints sorted by {trace.sorted_by}: {', '.join(figures) or 'none was measured'}"
    if trace.explored is not None:
        yield f"{trace.explored} came first because its figures were old or few"
    if trace.probe is not None:
        yield f"{trace.probe} came first to probe it after its cooldown"
    if record.limit_warning is not None:
        yield f"the reply warned of a limit: {record.limit_warning} used"


def _figure(speed: Speed, sorted_by: ProviderSort) -> str:
    """Return the measurement that is compared."""
    match sorted_by:
        case "latency":
            return f"{speed.latency_ms:,} ms"
        case "throughput":
            rate = speed.tokens_per_s
            return "without a rate" if rate is None else f"{rate:.1f} tokens/s"
        case "price":
            share = speed.cached_share
            return "without a cached share" if share is None else f"{share:.0%} cached"


def _explain_attempts(record: GenerationRecord) -> Iterator[str]:
    """Yield the requested model (if another model served), each failed attempt, and the final
    failure.
    """
    requested = record.trace.requested_model
    if requested != record.model:
        rule = f", rule {record.trace.rule}" if record.trace.rule else ""
        yield f"requested {requested}{rule}"
    for number, attempt in enumerate(record.attempts, start=1):
        if attempt.error is None:
            continue
        failure = f"{attempt.status or ''} {attempt.error}".strip()
        paid = attempt.operator_cost_nano_usd
        operator_cost = f", {_dollars(usd(paid))} paid by the operator" if paid else ""
        served = f"{attempt.model} via {attempt.provider}"
        yield f"attempt {number} {served}: {failure}, $0{operator_cost}"
        if attempt.provider_words:
            yield f"{attempt.provider} answered: {attempt.provider_words}"
    if record.outcome != "ok":
        yield f"{record.outcome}: {record.error or 'the client disconnected'}"


def _explain_reuse(record: GenerationRecord) -> Iterator[str]:
    """Yield the generation whose answer was reused, and the saving."""
    if (reused := record.reused) is not None:
        saved = _dollars(usd(reused.saved_nano_usd))
        yield f"reused the answer of gen-{reused.generation_id}, which saved {saved}"


def _explain_shadow(record: GenerationRecord) -> Iterator[str]:
    """Yield the original of a shadow generation or of its judge."""
    if (shadow := record.shadow) is not None:
        kind = "judge of the shadow" if shadow.judges else "shadow"
        yield f"{kind} of gen-{shadow.generation_id} on route {shadow.route}"


def _explain_judgements(record: GenerationRecord) -> Iterator[str]:
    """Yield the guardrails that changed, refused or flagged a text, or gave no verdict."""
    for each in record.judgements:
        if each.verdict != "pass":
            found = f": {', '.join(each.findings)}" if each.findings else ""
            stage = each.stage.replace("_", " ")
            yield f"guardrail {each.guardrail}: {each.verdict} on {stage}{found}"


def _explain_runs(record: GenerationRecord) -> Iterator[str]:
    """Yield the number of rounds, then each run of a server tool."""
    if record.rounds:
        yield f"{len(record.rounds)} rounds; each line begins with the number of its round"
    for run in record.runs:
        engine = f" by {run.engine}" if run.engine else ""
        outcome = f": {run.error}" if run.error else ""
        yield f"round {run.round} ran {run.tool}{engine}, {run.duration_ms / 1000:.1f} s{outcome}"


def _explain_figures(record: GenerationRecord) -> Iterator[str]:
    """Yield notes on cache savings, reasoning, unpriced searches and unreliable usage."""
    if (saved := _cache_saved_usd(record)) > 0:
        yield f"cache saved {_dollars(saved)}"
    if record.usage.reasoning_tokens:
        yield f"{record.usage.reasoning_tokens:,} of the output tokens are reasoning"
    if record.usage.video_seconds and record.trace.picture is not None:
        yield f"{record.usage.video_seconds} s of {record.trace.picture.size}"
    if any(line.item == "unpriced_web_search" for line in record.lines):
        yield "the provider searched the web, but the catalog has no price for searches"
    if record.withheld_calls:
        yield (
            f"{record.withheld_calls} tool calls were billed but not delivered: the caller allowed "
            "only one"
        )
    match record.usage_source:
        case "estimated":
            yield "the provider reported no usage; this is an estimate"
        case "bounded":
            yield (
                "the provider reported more usage than the answer can have; the upper bound is "
                "billed"
            )
        case "provider" | "none":
            pass


def _cache_saved_usd(record: GenerationRecord) -> Decimal:
    """Return the savings from cached tokens, compared with uncached input."""
    fresh = {line.round: line.usd_per_million for line in record.lines if line.item == "input"}
    return sum(
        (
            (fresh[line.round] - line.usd_per_million) * line.quantity / _MILLION
            for line in record.lines
            if line.item == "cache_read" and line.round in fresh
        ),
        Decimal(0),
    )


def _explain_surprise(
    record: GenerationRecord, earlier: Sequence[GenerationRecord]
) -> Iterator[str]:
    """Yield a sentence that compares an unusual cost with the key's earlier requests.

    A cost is unusual if it is at least twice the median of at least ten requests.
    """
    if len(earlier) < OTHERS_MIN or not record.lines:
        return
    usual = median(Decimal(other.cost_nano_usd) for other in earlier)
    if not usual or (times := record.cost_nano_usd / usual) < _SURPRISING_TIMES:
        return
    causes = ", ".join(_compare_items(record, earlier))
    shares = ", ".join(_shares(record))
    yield (
        f"why so much: {times:.1f} × the median of this key's last {len(earlier)} requests"
        f" ({_dollars(usd(int(usual)))}): {causes}{f'; {shares}' if shares else ''}"
    )


def _compare_items(record: GenerationRecord, earlier: Sequence[GenerationRecord]) -> Iterator[str]:
    """Yield the two items that add most to the cost, each with its usual cost."""
    items = {line.item for line in record.lines}
    cost = {item: _sum_item(record.lines, item) for item in items}
    usual = {
        item: median(Decimal(_sum_item(other.lines, item)) for other in earlier) for item in items
    }
    by_extra = sorted(items, key=lambda item: (usual[item] - cost[item], item))
    for item in by_extra[:_CAUSES_MAX]:
        if cost[item] > usual[item]:
            name = ITEM_NAMES.get(item, item)
            yield f"{name} {_dollars(usd(cost[item]))} (usually {_dollars(usd(int(usual[item])))})"


def _shares(record: GenerationRecord) -> Iterator[str]:
    """Yield the shares of cached input, of reasoning, and of the rounds that called tools."""
    usage = record.usage
    if (cached := usage.cache_read_input_tokens) and usage.input_tokens:
        yield f"{100 * cached // usage.input_tokens} % of the prompt was cached"
    if usage.reasoning_tokens and usage.output_tokens:
        share = 100 * usage.reasoning_tokens // usage.output_tokens
        yield f"{share} % of the output was reasoning"
    if record.rounds and record.cost_nano_usd:
        later = sum(line.cost_nano_usd for line in record.lines if (line.round or 1) > 1)
        share = 100 * later // record.cost_nano_usd
        yield f"{share} % was spent after the first of {len(record.rounds)} rounds with tools"


def _sum_item(lines: Sequence[BillLine], item: str) -> int:
    return sum(line.cost_nano_usd for line in lines if line.item == item)


def _dollars(amount: Decimal) -> str:
    """Return an unrounded amount with at least five decimals, such as `$0.31002`."""
    if not amount:
        return "$0"
    whole, _, part = f"{amount:,f}".partition(".")
    return f"${whole}.{part.rstrip('0').ljust(_PLACES, '0')}"
