"""A review in rows, for people: what is lost first, then what else is different."""

from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from typing import Final, Literal, TypeVar

from msgspec import Struct

from tollgate.core.money import usd
from tollgate.routing.review.diff import Change, Fact
from tollgate.routing.review.facts import format_rate
from tollgate.routing.review.replay import Flow, TrafficReplay
from tollgate.routing.review.review import BrokenPromise, Review

Sign = Literal["-", "~", "+", "!"]
_SIGNS: Final[dict[str, Sign]] = {"removed": "-", "changed": "~", "added": "+"}
_CENTS: Final = 2
_SUBJECT_WIDTH_MAX: Final = 56
_ROW_CHARACTERS_MAX: Final = 400
_TENTH: Final = Decimal("0.1")
_Place = TypeVar("_Place", str, tuple[str, ...], tuple[str, str], tuple[str, str, str])


class ReviewRow(Struct, frozen=True):
    """One line: a sign as a diff has it, what kind of thing, which one, and what is said of it."""

    sign: Sign
    what: str
    subject: str
    said: str = ""


def breaking_rows(review: Review) -> list[ReviewRow]:
    """What is removed, refused, or promised and not kept."""
    rows = [_changed(change, review) for change in review.removals]
    rows += [ReviewRow("!", "promise", found.route, _promise(found)) for found in review.promises]
    if review.replay is not None:
        rows += [
            ReviewRow("-", "refused", asked, f"{_requests(flow.requests)}, {code}, {_spend(flow)}")
            for (asked, code), flow in _most_first(review.replay.refused.items())
        ]
    return rows


def other_rows(review: Review) -> list[ReviewRow]:
    """What else is different, and what it does to traffic."""
    rows = [
        _changed(change, review)
        for change in review.changes
        if change.kind != "removed" and change.what != "note"
    ]
    return rows if review.replay is None else [*rows, *_traffic(review.replay)]


def note_rows(review: Review) -> list[ReviewRow]:
    """What only people read."""
    return [_changed(change, review) for change in review.changes if change.what == "note"]


def aligned(rows: Sequence[ReviewRow]) -> list[str]:
    """The rows under each other, none longer than a line may be."""
    what = max((len(row.what) for row in rows), default=0)
    subject = min(max((len(row.subject) for row in rows), default=0), _SUBJECT_WIDTH_MAX)
    lines = (
        f"{row.sign} {row.what:<{what}}  {printable(row.subject):<{subject}}  {printable(row.said)}"
        for row in rows
    )
    return [_clipped(line.rstrip()) for line in lines]


def printable(text: str) -> str:
    """Text that cannot colour, hide or break a line, whatever somebody wrote into a file."""
    return "".join(character if character.isprintable() else "?" for character in text)


def money(amount_nano_usd: int) -> str:
    """Dollars with cents, or as many digits as tell a small amount."""
    exact = usd(amount_nano_usd)
    places = max(_CENTS, 1 - exact.adjusted()) if exact else _CENTS
    return f"{'-' if exact < 0 else ''}${abs(exact):,.{places}f}"


def rise(before_nano_usd: int, after_nano_usd: int) -> str:
    """`+$10.18, +0.2 %`"""
    more = after_nano_usd - before_nano_usd
    sign = "-" if more < 0 else "+"
    said = f"{sign}{money(abs(more))}"
    if not before_nano_usd:
        return said
    return f"{said}, {_signed(Decimal(more) / Decimal(before_nano_usd) * 100)} %"


def percent_of(part: int, whole: int) -> str:
    """`1.8 %`"""
    share = Decimal(part) / Decimal(whole) * 100 if whole else Decimal(0)
    return f"{share.quantize(_TENTH)} %"


def _changed(change: Change, review: Review) -> ReviewRow:
    said = "  ".join(map(_fact, change.facts))
    share = _share(change, review.replay)
    return ReviewRow(
        _SIGNS[change.kind],
        change.what,
        change.subject,
        "   ".join(filter(None, (said, share))),
    )


def _fact(fact: Fact) -> str:
    if fact.before is None:
        return f"{fact.name} {fact.after}"
    after = "not set" if fact.after is None else fact.after
    percent = f" ({_signed(fact.percent)} %)" if fact.percent is not None else ""
    return f"{fact.name} {fact.before} → {after}{percent}"


def _share(change: Change, replay: TrafficReplay | None) -> str:
    """How much of the traffic is asked of what changes, before it does."""
    if (
        replay is None
        or change.kind == "added"
        or change.what not in ("model", "endpoint", "price")
    ):
        return ""
    asked = sum(
        count
        for endpoint, count in replay.first_endpoints.items()
        if endpoint == change.subject or endpoint.startswith(f"{change.subject} @ ")
    )
    return f"{percent_of(asked, replay.requests)} of traffic"


def _promise(found: BrokenPromise) -> str:
    broken = found.breaks
    return (
        f"from {broken.day} {broken.model} @ {broken.provider} costs ${format_rate(broken.rate)}/M "
        f"{broken.kind}, promised is ${format_rate(broken.most)} at most"
    )


def _traffic(replay: TrafficReplay) -> Iterator[ReviewRow]:
    for (asked, before, after), flow in _most_first(replay.moves.items()):
        said = f"{_requests(flow.requests)}: {before} → {after}, {_spend(flow)}"
        yield ReviewRow("~", "moves", asked, said)
    for endpoint, flow in _most_first(replay.repriced.items()):
        yield ReviewRow("~", "costs", endpoint, f"{_requests(flow.requests)}, {_spend(flow)}")
    for asked, flow in _most_first(replay.admitted.items()):
        yield ReviewRow("+", "admitted", asked, f"{_requests(flow.requests)}, {_spend(flow)}")
    for metadata, flow in _most_first(replay.undecided.items()):
        said = f"{_requests(flow.requests)} ({money(flow.before_nano_usd)}) do not record it"
        yield ReviewRow("!", "unknown", f"metadata {', '.join(metadata)}", said)


def _most_first(flows: Iterable[tuple[_Place, Flow]]) -> list[tuple[_Place, Flow]]:
    return sorted(flows, key=lambda entry: (-entry[1].requests, entry[0]))


def _requests(count: int) -> str:
    return f"{count:,} request{'' if count == 1 else 's'}"


def _spend(flow: Flow) -> str:
    return f"{money(flow.before_nano_usd)} → {money(flow.after_nano_usd)}"


def _signed(percent: Decimal) -> str:
    return f"{percent.quantize(_TENTH):+}"


def _clipped(line: str) -> str:
    return line if len(line) <= _ROW_CHARACTERS_MAX else f"{line[: _ROW_CHARACTERS_MAX - 3]}..."
