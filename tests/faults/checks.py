"""The checks of a fault test: what each item of the ledger adds up to at any moment."""

import asyncio
import re
from collections import Counter
from dataclasses import dataclass, field

from tollgate.aws.attributes import Item
from tollgate.stores.aws.decoding import read_number, read_numbers_by_name, read_text

LIMIT = 10**12
# A run lasts some days of November 2026, whose buckets these are.
_LASTING = {"b_total": "lt", "b_202611": "lm"}
_DAY = re.compile(r"b_\d{8}")


@dataclass
class Findings:
    """What went wrong, in words, and how much was looked at; the day's bucket it all began in."""

    first_day: str = ""
    violations: list[str] = field(default_factory=list)
    counts: Counter[str] = field(default_factory=Counter)
    violated: asyncio.Event = field(default_factory=asyncio.Event)

    def check(self, holds: bool, what: str) -> None:
        if not holds:
            self.violations.append(what)
            self.violated.set()


def check_shard(item: Item, findings: Findings) -> None:
    held = sum(read_numbers_by_name(item, "h").values())
    available, spent = read_number(item, "av"), read_number(item, "sp")
    total = available + held + spent
    findings.check(total == read_number(item, "gr"), f"I1: {read_text(item, 'pk')} {total}")
    findings.check(available >= 0, f"I2: {read_text(item, 'pk')} has {available}")


def check_state(item: Item, findings: Findings) -> None:
    """What every period has left, with what is held and spent, is its limit.

    A slice has a part of the limit. An hour after its end a day's bucket goes; one that an old hold
    brings back begins anew, and one of a slice is no longer divided.
    """
    used = sum(read_numbers_by_name(item, "h").values()) + read_number(item, "us")
    for period, of in _LASTING.items():
        limit = read_number(item, of)
        left = read_number(item, period) if period in item else limit
        findings.check(left + used == limit, f"I6: {period} has {left} left of {used}")
        findings.check(left >= 0, f"I6: {period} has {left} left")
    for name in item:
        if name.startswith("c_usd/month/"):
            counted = read_number(item, name)
            findings.check(counted == used, f"I6: a quota counts {counted} of {used}")
            findings.counts["quotas seen"] += 1
    if read_number(item, "ld") != LIMIT:
        findings.counts["slices seen"] += 1
        return
    days = {name: LIMIT - read_number(item, name) for name in item if _DAY.fullmatch(name)}
    findings.counts["midnights"] += len(days) > 1
    if days.get(findings.first_day, 0) > 0:
        findings.check(sum(days.values()) == used, f"I6: {days} of {used}")
