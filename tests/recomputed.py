"""A record's bill, computed again from its trace, its usage and the catalog, by another way.

Nothing of the gateway's own billing is used: each unit is multiplied and rounded here.
"""

from collections.abc import Mapping
from decimal import ROUND_HALF_UP, Decimal
from functools import reduce
from typing import Final

from tollgate.core.records.generation import GenerationRecord
from tollgate.core.usage import PIECES, Usage
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.price import Price, PriceSchedule

_MILLION: Final = 1_000_000
# By unit: the item of its line, the rate of `Price`, and the pieces that one rate buys.
UNITS: Final[Mapping[str, tuple[str, str, int]]] = {
    "images": ("image", "image", 1),
    "search_units": ("search", "search", 1),
    "audio_seconds": ("audio_second", "audio_hour", 3_600),
    "characters": ("character", "characters", _MILLION),
    "text_units": ("text_unit", "text_units", 1_000),
    "video_seconds": ("video_second", "video_second", 1),
}
# By rate, which is the class's name too: the item of its line, and the tokens that it is part of.
# Sound comes first: it leaves to pictures what it did not take.
PARTS: Final[Mapping[str, tuple[str, str]]] = {
    "audio_input": ("input_audio", "input"),
    "audio_output": ("output_audio", "output"),
    "image_input": ("input_image", "input"),
    "image_output": ("output_image", "output"),
}
# By class of cached tokens of a prompt: the item of its line, and its rate, or else that of input.
CACHED: Final[Mapping[str, tuple[str, str]]] = {
    "cache_read_input_tokens": ("cache_read", "cache_read"),
    "cache_write_5m_input_tokens": ("cache_write_5m", "cache_write"),
}
# Items of tokens, which have a line at a rate of zero too.
_TOKENS: Final = {
    *("input", "output"),
    *(item for item, _ in (*PARTS.values(), *CACHED.values())),
}


def recompute_lines(usage: Usage, price: Price) -> dict[str, int]:
    """The cost of each item in nano-dollars, of work that is no conversation."""
    left = {"input": usage.uncached_input_tokens or 0, "output": usage.output_tokens or 0}
    lines: dict[str, tuple[int, Decimal | None, int]] = {}
    for part, (item, whole) in PARTS.items():
        rate = getattr(price, part)
        tokens = getattr(usage, f"{part}_tokens") or 0
        taken = 0 if rate is None else min(tokens, left[whole])
        left[whole] -= taken
        lines[item] = (taken, rate, _MILLION)
    for item, tokens in left.items():
        lines[item] = (tokens, getattr(price, item), _MILLION)
    for tokens_class, (item, rate) in CACHED.items():
        stated = getattr(price, rate)
        cached = getattr(usage, tokens_class) or 0
        lines[item] = (cached, price.input if stated is None else stated, _MILLION)
    for unit, (item, rate, pieces) in UNITS.items():
        lines[item] = (getattr(usage, unit) or 0, getattr(price, rate), pieces)
    return {
        item: _cost(quantity, rate, pieces)
        for item, (quantity, rate, pieces) in lines.items()
        if quantity and rate is not None and (rate or item in _TOKENS)
    }


def find_wrong_bill(record: GenerationRecord, catalog: Catalog) -> str | None:
    """What is wrong with the bill of a record that was served, in words; None if it is right."""
    if record.model is None:
        return f"{record.cost_nano_usd} for nothing" if record.cost_nano_usd else None
    (endpoint,) = (
        each for each in catalog.models[record.model].endpoints if each.provider == record.provider
    )
    if record.rounds:
        return _find_wrong_rounds(record, endpoint.schedule)
    picture = record.trace.picture
    price = endpoint.schedule.at(record.created_s, record.usage.input_tokens, picture)
    expected = recompute_lines(record.usage, price)
    found = {line.item: line.cost_nano_usd for line in record.lines}
    if found != expected:
        return f"lines {found}, recomputed {expected}"
    if record.cost_nano_usd != sum(expected.values()):
        return f"cost {record.cost_nano_usd}, recomputed {sum(expected.values())}"
    most = record.trace.units_max
    above = [it for it in PIECES if most and (getattr(record.usage, it) or 0) > getattr(most, it)]
    return f"more {above} than were held" if above else None


def _find_wrong_rounds(record: GenerationRecord, schedule: PriceSchedule) -> str | None:
    """What is wrong with a bill of rounds: each has its own lines, and each run its fee."""
    expected = {
        (number, item): cost
        for number, usage in enumerate(record.rounds, start=1)
        for item, cost in recompute_lines(
            usage, schedule.at(record.created_s, usage.input_tokens)
        ).items()
    }
    own = {(line.round, line.item): line.cost_nano_usd for line in record.lines}
    found = {place: cost for place, cost in own.items() if place[1] in _TOKENS}
    if found != expected:
        return f"lines {found}, recomputed {expected}"
    fees = sum(line.cost_nano_usd for line in record.lines if line.item not in _TOKENS)
    charged = sum(run.cost_nano_usd for run in record.runs)
    if fees != charged:
        return f"fees {fees} for runs that cost {charged}"
    if record.cost_nano_usd != fees + sum(expected.values()):
        return f"cost {record.cost_nano_usd}, recomputed {fees + sum(expected.values())}"
    added = reduce(Usage.plus, record.rounds)
    return None if added == record.usage else f"usage {record.usage}, of all rounds {added}"


def _cost(quantity: int, rate: Decimal, pieces: int) -> int:
    # The rate by the second is stored, and rounded, as dollars per million.
    by_million = rate * _MILLION / pieces
    if pieces == UNITS["audio_seconds"][2]:
        by_million = by_million.quantize(Decimal("1e-9"))
    exact = quantity * by_million * 1_000
    return int(exact.quantize(Decimal(1), rounding=ROUND_HALF_UP))
