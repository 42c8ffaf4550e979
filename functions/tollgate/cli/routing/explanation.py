"""A plan as a person reads it: where the request goes, who is considered, what would happen."""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Any, Final

_PLACES_MIN: Final = 3
_HEADS: Final = ("", "model", "share", "draw", "endpoint", "share", "draw", "costs at most", "")
_GAP: Final = "  "


def explanation(told: Any) -> list[str]:
    """The lines of an explanation, which is as `POST /v1/route/explain` answers it."""
    lines = [_headline(told), _sizes(told), ""]
    lines += _aligned([_HEADS, *(_row(each) for each in _in_order(told["candidates"]))])
    lines.append("")
    if told["error"] is None:
        lines.append(f"Holds {_dollars(told['hold'])}. Next on: {', '.join(told['next_on'])}.")
    else:
        lines.append(f"Refused: {told['error']['message']} ({told['error']['code']})")
    if told["simulation"] is not None:
        lines += _simulation(told["simulation"])
    return lines


def _headline(told: Any) -> str:
    name = told["requested"]
    if told["route"] not in (None, name):
        name = f"{name} → {told['route']}"
    chosen = f" → rule {told['rule']}" if told["rule"] else ""
    skipped = "; ".join(f"rule {each['rule']}: {each['reason']}" for each in told["skipped"])
    because = f" (not {skipped})" if skipped else ""
    return f"{name}{chosen}{because}{_GAP}catalog {told['catalog_sha'][:7]}"


def _sizes(told: Any) -> str:
    return (
        f"about {told['prompt_tokens']:,} prompt tokens, {told['prompt_tokens_max']:,} at most; "
        f"drawn by {told['drawn_by']}"
    )


def _in_order(candidates: Sequence[Any]) -> list[Any]:
    """Those of the plan in its order, then those that are out."""
    return sorted(candidates, key=lambda each: each["attempt"] or len(candidates) + 1)


def _row(candidate: Any) -> tuple[str, ...]:
    resting = candidate["resting_until"]
    return (
        str(candidate["attempt"] or "-"),
        candidate["model"],
        _percent(candidate["model_weight"]),
        _score(candidate["model_draw"]),
        f"{candidate['provider']}/{candidate['upstream']}",
        _percent(candidate["weight"]),
        _score(candidate["draw"]),
        _dollars(candidate["cost_max"]),
        candidate["removed"] or (f"rests until {resting}" if resting else ""),
    )


def _simulation(simulation: Any) -> Iterator[str]:
    """Every try of the walk, one line each."""
    yield f"With {', '.join(simulation['faults'])}:"
    elapsed_s = Decimal(0)
    for attempt in simulation["attempts"]:
        elapsed_s += Decimal(str(attempt["took_s"]))
        who = f"{attempt['model']} at {attempt['provider']}/{attempt['upstream']}"
        yield f"  {elapsed_s:>8.2f} s  {who}  {attempt['error'] or 'serves'}"
        elapsed_s += Decimal(str(attempt["pause_s"]))
    if simulation["error"] is not None:
        yield f"Nobody serves: the caller is told {simulation['error']}."


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows under each other, without the columns that say nothing."""
    heads, *body = rows
    used = [index for index in range(len(heads)) if any(row[index] for row in body)]
    widths = {index: max(len(row[index]) for row in rows) for index in used}
    return [
        _GAP.join(row[index].ljust(widths[index]) for index in used).rstrip()
        for row in (rows if body else [])
    ]


def _percent(weight: int | None) -> str:
    return "" if weight is None else f"{weight} %"


def _score(draw: Any) -> str:
    return "" if draw is None else f"{Decimal(str(draw)):.2f}"


def _dollars(amount: Any) -> str:
    """Dollars with as many digits as it takes to tell small amounts apart."""
    exact = Decimal(str(amount))
    places = max(_PLACES_MIN, 2 - exact.adjusted()) if exact else _PLACES_MIN
    return f"${exact:,.{places}f}"
