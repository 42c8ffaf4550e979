"""Rows for the text and Markdown output of a review."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final, Literal, TypeVar

from msgspec import Struct

from tollgate.core.money.amounts import usd
from tollgate.routing.review.diff import Change, Fact
from tollgate.routing.review.facts import format_rate
from tollgate.routing.review.replay import CostedRequest, Flow, TrafficReplay
from tollgate.routing.review.review import BrokenPromise, Review, SecretMove

Sign = Literal["-", "~", "+", "!"]
_SIGNS: Final[dict[str, Sign]] = {"removed": "-", "changed": "~", "added": "+"}
_CENTS: Final = 2
_MONTH_DAYS: Final = 30
_SUBJECT_WIDTH_MAX: Final = 56
_ROW_CHARACTERS_MAX: Final = 400
_TENTH: Final = Decimal("0.1")
_Place = TypeVar("_Place", str, tuple[str, ...], tuple[str, str], tuple[str, str, str])


class ReviewRow(Struct, frozen=True):
    """A line in a review: a diff sign, the kind and name of the subject, and the difference."""

    sign: Sign
    what: str
    subject: str
    detail: str = ""


def secret_rows(review: Review) -> list[ReviewRow]:
    """Return a row for each secret that would be sent to another host."""
    return [
        ReviewRow("-", "sends", move.secret, _secret_move(move)) for move in review.secret_moves
    ]


def deploy_rows(review: Review) -> list[ReviewRow]:
    """Return a row for each name that must be deployed before the head can be published."""
    return [ReviewRow("!", "deploy", name) for name in review.deploy_first]


def breaking_rows(review: Review) -> list[ReviewRow]:
    """Return rows for removals, refused requests and broken price promises."""
    rows = [_changed(change, review) for change in review.removals]
    rows += [ReviewRow("!", "promise", found.route, _promise(found)) for found in review.promises]
    if review.replay is not None:
        rows += [
            ReviewRow("-", "refused", name, _effect(flow, code))
            for (name, code), flow in _most_first(review.replay.refused.items())
        ]
    return rows


def other_rows(review: Review) -> list[ReviewRow]:
    """Return rows for all other changes, and for their effects on traffic."""
    rows = [
        _changed(change, review)
        for change in review.changes
        if change.kind != "removed" and change.what != "note"
    ]
    return rows if review.replay is None else [*rows, *_traffic(review.replay)]


def note_rows(review: Review) -> list[ReviewRow]:
    """Return rows for changed notes, which only people read."""
    return [_changed(change, review) for change in review.changes if change.what == "note"]


def align_rows(rows: Sequence[ReviewRow]) -> list[str]:
    """Return the rows as lines with aligned columns, clipped to the maximum length."""
    what = max((len(row.what) for row in rows), default=0)
    subject = min(max((len(row.subject) for row in rows), default=0), _SUBJECT_WIDTH_MAX)
    lines = (
        f"{row.sign} {row.what:<{what}}  {make_printable(row.subject):<{subject}}  "
        f"{make_printable(row.detail)}"
        for row in rows
    )
    return [_clipped(line.rstrip()) for line in lines]


def make_printable(text: str) -> str:
    """Return text with `?` for characters that could colour, hide or break a line."""
    return "".join(character if character.isprintable() else "?" for character in text)


def format_money(amount_nano_usd: int) -> str:
    """Return dollars and cents; amounts below a cent have two significant digits."""
    exact = usd(amount_nano_usd)
    places = max(_CENTS, 1 - exact.adjusted()) if exact else _CENTS
    return f"{'-' if exact < 0 else ''}${abs(exact):,.{places}f}"


def format_change(costs: Flow | CostedRequest) -> str:
    """Return the costs before and after, such as `$4.10 → $4.20`."""
    return f"{format_money(costs.before_nano_usd)} → {format_money(costs.after_nano_usd)}"


def format_rise(flow: Flow) -> str:
    """Return the difference in costs, such as `+$10.18, +0.2 %`."""
    more = flow.after_nano_usd - flow.before_nano_usd
    amount = f"{'-' if more < 0 else '+'}{format_money(abs(more))}"
    if not flow.before_nano_usd:
        return amount
    return f"{amount}, {_signed(Decimal(more) / Decimal(flow.before_nano_usd) * 100)} %"


def format_percent(part: int, whole: int) -> str:
    """Return a percentage, such as `1.8 %`."""
    share = Decimal(part) / Decimal(whole) * 100 if whole else Decimal(0)
    return f"{share.quantize(_TENTH)} %"


def _changed(change: Change, review: Review) -> ReviewRow:
    facts = "  ".join(map(_fact, change.facts))
    share = _share(change, review.replay)
    return ReviewRow(
        _SIGNS[change.kind],
        change.what,
        change.subject,
        "   ".join(filter(None, (facts, share))),
    )


def _fact(fact: Fact) -> str:
    if fact.before is None:
        return f"{fact.name} {fact.after}"
    after = "not set" if fact.after is None else fact.after
    percent = f" ({_signed(fact.percent)} %)" if fact.percent is not None else ""
    return f"{fact.name} {fact.before} → {after}{percent}"


def _share(change: Change, replay: TrafficReplay | None) -> str:
    """Return the share of requests that, with the base, made their first attempt at the subject
    (or, for a tool or preset, used it).
    """
    if replay is not None and change.what == "preset" and change.kind != "added":
        return f"{format_percent(replay.presets[change.subject], replay.requests)} of traffic"
    if (
        replay is None
        or change.kind == "added"
        or change.what not in ("model", "endpoint", "price")
    ):
        return ""
    requests = replay.fees[change.subject] + sum(
        count
        for endpoint, count in replay.first_endpoints.items()
        if endpoint == change.subject or endpoint.startswith(f"{change.subject} @ ")
    )
    return f"{format_percent(requests, replay.requests)} of traffic"


def _secret_move(move: SecretMove) -> str:
    before = (
        f", before to {', '.join(move.hosts_before)}" if move.hosts_before else ", before nowhere"
    )
    return f"to {move.host} by {', '.join(move.providers)}{before}"


def _promise(found: BrokenPromise) -> str:
    broken = found.breaks
    return (
        f"from {broken.day} {broken.model} @ {broken.provider} costs ${format_rate(broken.rate)}/M "
        f"{broken.kind}, although at most ${format_rate(broken.most)} is promised"
    )


def _traffic(replay: TrafficReplay) -> Iterator[ReviewRow]:
    for (name, before, after), flow in _most_first(replay.moves.items()):
        detail = f"{_requests(flow.requests)}: {before} → {after}, {format_change(flow)}"
        yield ReviewRow("~", "moves", name, detail)
    for endpoint, flow in _most_first(replay.repriced.items()):
        yield ReviewRow("~", "costs", endpoint, _effect(flow))
    for name, flow in _most_first(replay.admitted.items()):
        yield ReviewRow("+", "admitted", name, _effect(flow))
    for route, flow in _most_first(replay.shadows.items()):
        month = format_money(round(flow.after_nano_usd * _MONTH_DAYS / replay.days))
        detail = f"{_effect(flow)}, {month} in {_MONTH_DAYS} days if every key stores content"
        yield ReviewRow("~", "shadow", route, detail)
    for metadata, flow in _most_first(replay.undecided.items()):
        cost = format_money(flow.before_nano_usd)
        detail = f"{_requests(flow.requests)} ({cost}) do not record the metadata"
        yield ReviewRow("!", "unknown", f"metadata {', '.join(metadata)}", detail)


def _most_first(flows: Iterable[tuple[_Place, Flow]]) -> list[tuple[_Place, Flow]]:
    return sorted(flows, key=lambda entry: (-entry[1].requests, entry[0]))


def _requests(count: int) -> str:
    return f"{count:,} request{'' if count == 1 else 's'}"


def _effect(flow: Flow, *words: str) -> str:
    """Return a text with the number of requests, then `words`, then the cost of the requests before
    and after.
    """
    return ", ".join((_requests(flow.requests), *words, format_change(flow)))


def _signed(percent: Decimal) -> str:
    return f"{percent.quantize(_TENTH):+}"


def _clipped(line: str) -> str:
    return line if len(line) <= _ROW_CHARACTERS_MAX else f"{line[: _ROW_CHARACTERS_MAX - 3]}..."
