"""Where two prices of one endpoint bill differently: per class, at each time and size that counts.

Compared is what a token costs, not how a file spells it: a class without a rate is billed as input
or output, and overrides are what they come to.
"""

from collections.abc import Iterator
from datetime import UTC, date, datetime, time
from decimal import Decimal

from msgspec import Struct
from msgspec.structs import fields

from tollgate.routing.price import Price, PriceOverride, PriceSchedule


class _Situation(Struct, frozen=True):
    """A second and a size of prompt, with words for both."""

    when_s: float
    prompt_tokens: int
    words: str


class Difference(Struct, frozen=True, kw_only=True):
    """One class that costs differently, and when it does: `always`, or where exactly."""

    rate: str
    ours: Decimal
    theirs: Decimal
    when: str


def differences(ours: PriceSchedule, theirs: PriceSchedule, today: date) -> tuple[Difference, ...]:
    """What differs from a UTC day on."""
    situations = tuple(_situations((*ours.overrides, *theirs.overrides), today))
    found: dict[tuple[str, Decimal, Decimal], list[str]] = {}
    for situation in situations:
        our = ours.at(situation.when_s, situation.prompt_tokens)
        their = theirs.at(situation.when_s, situation.prompt_tokens)
        for rate in _stated(our) | _stated(their):
            billed = _billed(our)[rate], _billed(their)[rate]
            if billed[0] != billed[1]:
                found.setdefault((rate, *billed), []).append(situation.words)
    return tuple(
        Difference(
            rate=rate,
            ours=our_rate,
            theirs=their_rate,
            when="always" if len(words) == len(situations) else "; ".join(words),
        )
        for (rate, our_rate, their_rate), words in sorted(found.items())
    )


def _stated(price: Price) -> set[str]:
    return {field.name for field in fields(price) if getattr(price, field.name) is not None}


def _billed(price: Price) -> dict[str, Decimal]:
    """What each class is billed at."""
    as_input = {
        "cache_read": price.cache_read,
        "cache_write": price.cache_write,
        "cache_write_1h": price.cache_write_1h,
        "audio_input": price.audio_input,
    }
    return {
        "input": price.input,
        "output": price.output,
        **{name: price.input if rate is None else rate for name, rate in as_input.items()},
        "audio_output": price.output if price.audio_output is None else price.audio_output,
        "request": price.request or Decimal(0),
        "image": price.image or Decimal(0),
    }


def _situations(overrides: tuple[PriceOverride, ...], today: date) -> Iterator[_Situation]:
    """The first second of each span in which nothing changes, with the smallest prompts of each."""
    midnight_s = datetime.combine(today, time(), UTC).timestamp()
    edges = {edge_s for it in overrides for edge_s in (it.since_s, it.until_s) if edge_s}
    days_s = [midnight_s, *sorted(edge_s for edge_s in edges if edge_s > midnight_s)]
    minutes = sorted({edge for it in overrides for edge in it.utc_minutes or ()}) or [0]
    sizes = [0, *sorted({it.prompt_tokens_over for it in overrides if it.prompt_tokens_over})]
    for day_s in days_s:
        for minute, end in zip(minutes, [*minutes[1:], minutes[0]], strict=True):
            for size, largest in zip(sizes, [*sizes[1:], None], strict=True):
                words = (
                    f"from {datetime.fromtimestamp(day_s, UTC).date()}" if len(days_s) > 1 else "",
                    f"{_clock(minute)}-{_clock(end)} UTC" if len(minutes) > 1 else "",
                    _sized(size, largest),
                )
                yield _Situation(day_s + minute * 60, size + 1, ", ".join(filter(None, words)))


def _sized(over: int, largest: int | None) -> str:
    up_to = "" if largest is None else f" up to {largest}"
    least = f" over {over}" if over else ""
    return f"prompts{least}{up_to} tokens" if least or up_to else ""


def _clock(minute: int) -> str:
    return f"{minute // 60:02}:{minute % 60:02}"
