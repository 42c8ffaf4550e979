"""`tollgate shadow`: answers of shadow models, compared with the originals."""

from collections.abc import Iterable, Iterator, Mapping
from decimal import Decimal
from statistics import median
from typing import Any, Final

import click
from msgspec import Struct, field

from tollgate.cli.gateway.command import calls_gateway
from tollgate.cli.gateway.http import Api
from tollgate.cli.options import with_moments
from tollgate.cli.tables import OutputStyle, exact, show

_COLUMNS: Final = (
    *("route", "original", "shadow", "requests", "failed"),
    *("usd", "shadow_usd", "ms", "shadow_ms", "first_ms", "shadow_first_ms"),
    *("tokens", "shadow_tokens", "refused", "shadow_refused", "same_calls", "calls"),
    *("preferred", "ties", "judged", "judge_usd"),
)
_PAGE: Final = 500


class _Pair(Struct):
    """Figures of the originals, and of the shadows or judges."""

    of_original: list[Any] = field(default_factory=list)
    of_shadow: list[Any] = field(default_factory=list)

    def add(self, original: object, shadow: object) -> None:
        if original is not None and shadow is not None:
            self.of_original.append(original)
            self.of_shadow.append(shadow)


class _Compared(Struct):
    """The comparisons of one route, original model and shadow model."""

    requests: int = 0
    failed: int = 0
    usd: _Pair = field(default_factory=_Pair)
    ms: _Pair = field(default_factory=_Pair)
    first_ms: _Pair = field(default_factory=_Pair)
    tokens: _Pair = field(default_factory=_Pair)
    refused: _Pair = field(default_factory=_Pair)
    calls: list[bool] = field(default_factory=list)
    verdicts: list[str] = field(default_factory=list)
    judge_usd: Decimal = Decimal(0)

    def add(self, record: Mapping[str, Any]) -> None:
        """Add the record of a shadow generation."""
        shadow = record["shadow"]
        self.requests += 1
        if record["status"] != "ok":
            self.failed += 1
            return
        self.usd.add(_usd(shadow["cost"]), _usd(record["total_cost"]))
        self.ms.add(shadow["latency_ms"], record["latency_ms"])
        self.first_ms.add(shadow["first_token_ms"], record["first_token_ms"])
        self.tokens.add(shadow["tokens_completion"], record["tokens_completion"])
        self.refused.add(shadow["refused"], shadow["shadow_refused"])
        if shadow["tool_calls"] is not None:
            self.calls.append(shadow["tool_calls"] == "same")

    def judge(self, record: Mapping[str, Any]) -> None:
        """Add the record of a judge."""
        self.judge_usd += _usd(record["total_cost"])
        if (preferred := record["shadow"]["preferred"]) is not None:
            self.verdicts.append(preferred)


@click.group()
def shadow() -> None:
    """Compare the answers of shadow models with the originals."""


@shadow.command("report", epilog="Example: tollgate shadow report --since 30d")
@click.option("--since", metavar="AGO", default="7d", show_default=True, help="7d, 12h or a day.")
@click.option("--until", metavar="AGO", help="Same forms as --since; now by default.")
@click.option("--key", help="Name or id of the key that pays for the shadows.")
@calls_gateway
def report(api: Api, style: OutputStyle, **query: Any) -> None:
    """Compare cost, time, length, refusals and tool calls by route and models.

    The command needs a key of the workspace that pays. Only requests that both models answered
    count: amounts are their sums, times their medians, and lengths their means. `preferred` counts
    the judge's verdicts for the shadow.
    """
    records = api.pages("/generations", {**with_moments(query), "limit": _PAGE}, "cursor")
    rows = list(compare_shadows(records))
    show(rows, _COLUMNS, style, amounts=("usd", "shadow_usd", "judge_usd"))


def compare_shadows(records: Iterable[Mapping[str, Any]]) -> Iterator[Mapping[str, str]]:
    """Yield a row for each route, original model and shadow model among records."""
    compared: dict[tuple[str, str, str], _Compared] = {}
    judges: list[Mapping[str, Any]] = []
    models: dict[str, str] = {}
    for record in records:
        if record["shadow"] is None:
            continue
        if record["shadow"]["judges"]:
            judges.append(record)
            continue
        # The record of a judge names the same original, but not the shadow's model.
        models[record["shadow"]["generation_id"]] = record["requested_model"]
        compared.setdefault(_place(record, record["requested_model"]), _Compared()).add(record)
    for record in judges:
        model = models.get(record["shadow"]["generation_id"])
        if model is not None:
            compared[_place(record, model)].judge(record)
    for place, found in sorted(compared.items()):
        yield _row(place, found)


def _place(record: Mapping[str, Any], model: str) -> tuple[str, str, str]:
    shadow = record["shadow"]
    return shadow["route"], shadow["model"] or "-", model


def _row(place: tuple[str, str, str], found: _Compared) -> dict[str, str]:
    route, original, model = place
    answered = len(found.usd.of_shadow)
    return {
        "route": route,
        "original": original,
        "shadow": model,
        "requests": str(found.requests),
        "failed": str(found.failed),
        "usd": exact(sum(found.usd.of_original, Decimal(0))),
        "shadow_usd": exact(sum(found.usd.of_shadow, Decimal(0))),
        "ms": _median(found.ms.of_original),
        "shadow_ms": _median(found.ms.of_shadow),
        "first_ms": _median(found.first_ms.of_original),
        "shadow_first_ms": _median(found.first_ms.of_shadow),
        "tokens": _mean(found.tokens.of_original, answered),
        "shadow_tokens": _mean(found.tokens.of_shadow, answered),
        "refused": str(sum(found.refused.of_original)),
        "shadow_refused": str(sum(found.refused.of_shadow)),
        "same_calls": str(sum(found.calls)),
        "calls": str(len(found.calls)),
        "preferred": str(found.verdicts.count("shadow")),
        "ties": str(found.verdicts.count("neither")),
        "judged": str(len(found.verdicts)),
        "judge_usd": exact(found.judge_usd),
    }


def _median(values: list[int]) -> str:
    return str(round(median(values))) if values else "-"


def _mean(values: list[int], count: int) -> str:
    return str(round(sum(values) / count)) if count else "-"


def _usd(amount: object) -> Decimal:
    return Decimal(str(amount))
