"""The part of a write to a key's state that counts the key's quotas.

A hold's write notes the amounts that it adds to counters, under the hold's id. So a process that
did not place the hold, such as the sweeper, can settle the hold.
"""

from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct, field

from tollgate.aws.attributes import AttributeValue, Item, number
from tollgate.stores.aws.decoding import read_numbers_by_name
from tollgate.stores.aws.items import HoldingItem
from tollgate.stores.rules.quotas import QuotaTake, QuotaUse, stale_counters

_TAKEN_PREFIX: Final = "q_"


class QuotaPart(Struct, frozen=True):
    """The names and values for the counters of one write."""

    names: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, AttributeValue] = field(default_factory=dict)
    counters: int = 0


def hold_part(take: QuotaTake, hold_id: str, *, added: Sequence[int] | None = None) -> QuotaPart:
    """Return the part of the write that places a hold, or that increases it by `added`."""
    if not take.holds:
        return QuotaPart()
    values: dict[str, AttributeValue] = {
        ":zero": number(0),
        ":q": {"M": {each.name: number(each.taken) for each in take.holds}},
    }
    amounts = [each.taken for each in take.holds] if added is None else added
    for index, (amount, used_max) in enumerate(zip(amounts, take.used_max, strict=True)):
        values |= {f":c{index}": number(amount), f":r{index}": number(used_max)}
    return QuotaPart(
        {"#q": _taken_by(hold_id), **_names([each.name for each in take.holds])},
        values,
        len(take.holds),
    )


def settle_part(taken: Mapping[str, int], use: QuotaUse, hold_id: str) -> QuotaPart:
    """Return the part of a settlement that corrects the counters to which a hold has added."""
    values = {
        f":c{index}": number(use.unused(name, amount))
        for index, (name, amount) in enumerate(taken.items())
    }
    if values:
        values[":zero"] = number(0)
    return QuotaPart({"#q": _taken_by(hold_id), **_names(list(taken))}, values, len(taken))


def read_taken(item: Item | None, hold_id: str) -> dict[str, int]:
    """Return the amounts that a hold has added to the counters of a stored state."""
    name = _taken_by(hold_id)
    return {} if item is None or name not in item else dict(read_numbers_by_name(item, name))


def stale_names(item: Item, second: int) -> tuple[str, ...]:
    """Return the counters of windows that have ended, and the notes of holds that no longer exist.

    The release before this one settles a hold without removing the hold's note.
    """
    holds = item[HoldingItem.HOLDS]["M"]
    notes = sorted(
        name
        for name in item
        if name.startswith(_TAKEN_PREFIX) and name.removeprefix(_TAKEN_PREFIX) not in holds
    )
    return (*stale_counters(item, second), *notes)


def _names(counters: Sequence[str]) -> dict[str, str]:
    return {f"#c{index}": name for index, name in enumerate(counters)}


def _taken_by(hold_id: str) -> str:
    return f"{_TAKEN_PREFIX}{hold_id}"
