"""The chain of hashes over the entries of an audit log, sealed once a day.

The link of an entry is the SHA-256 of the previous link, the entry's id and its stored text. The
first link of a day continues from the last link of the previous day, so a seal covers all entries
up to its day.
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime
from hashlib import sha256
from typing import Final

from msgspec import Struct

from tollgate.core.clock import DAY_S
from tollgate.core.records.audit import AuditSeal, SealedDay

# The time between the end of a day and its sealing. An entry gets its id before its transaction is
# sent, and clocks differ.
_SEALED_AFTER_S: Final = 3_600
# The time after which an unsealed day counts as a problem, because the roll-up runs every hour.
_MISSED_AFTER_S: Final = 3 * 3_600
# The number of characters of each link in a seal, which locate the first difference, and the number
# of links. A DynamoDB item has 400 KB at most.
_MARK_LENGTH: Final = 8
_MARKS_MAX: Final = 30_000


class StoredEntry(Struct, frozen=True):
    """The id of an entry, and its text exactly as stored."""

    id: str
    text: str


def last_closed_day(now_s: float) -> str:
    """Return the last UTC day that may be sealed: `2026-11-21`."""
    return _day_of(int(now_s) - _SEALED_AFTER_S - DAY_S)


def days_to_seal(last_sealed: str | None, now_s: float) -> tuple[str, ...]:
    """Return the days to seal, oldest first: the last closed day if no day is sealed yet."""
    closed = last_closed_day(now_s)
    return (closed,) if last_sealed is None else days_between(_day_after(last_sealed), closed)


def days_between(first: str, last: str) -> tuple[str, ...]:
    """Return the days in [first, last], oldest first."""
    start, end = date.fromisoformat(first).toordinal(), date.fromisoformat(last).toordinal()
    return tuple(date.fromordinal(each).isoformat() for each in range(start, end + 1))


def day_start_s(day: str) -> int:
    """Return the Unix second at which a day begins."""
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())


def links(previous: str, entries: Iterable[StoredEntry]) -> list[str]:
    """Return the link of each entry, continuing from the link `previous`."""
    found: list[str] = []
    for entry in entries:
        previous = sha256(f"{previous}\n{entry.id}\n{entry.text}".encode()).hexdigest()
        found.append(previous)
    return found


def seal_day(day: str, before: AuditSeal | None, entries: Sequence[StoredEntry]) -> AuditSeal:
    """Return the seal for a day that follows the seal `before`."""
    previous = "" if before is None else before.hash
    chain = links(previous, entries)
    return AuditSeal(
        day=day,
        entries=len(entries),
        hash=chain[-1] if chain else previous,
        previous=previous,
        marks="".join(link[:_MARK_LENGTH] for link in chain[:_MARKS_MAX]),
    )


def check_day(
    day: str,
    found: AuditSeal | None,
    before: AuditSeal | None,
    entries: Sequence[StoredEntry],
    *,
    now_s: float,
) -> SealedDay:
    """Compare the entries of a day with its seal, and the seal with the previous one.

    A day without a seal is not a problem if it comes before the first seal, or is not due yet.
    """
    if found is None:
        overdue = before is not None and day <= _day_of(int(now_s) - _MISSED_AFTER_S - DAY_S)
        problem = "The seal is missing." if overdue else None
        return SealedDay(day=day, entries=len(entries), problem=problem)
    chain = links(found.previous, entries)
    marks = [found.marks[at : at + _MARK_LENGTH] for at in range(0, len(found.marks), _MARK_LENGTH)]
    first = next(
        (
            entry.id
            for entry, link, mark in zip(entries, chain, marks, strict=False)
            if not link.startswith(mark)
        ),
        None,
    )
    problem = None
    if (chain[-1] if chain else found.previous) != found.hash or len(entries) != found.entries:
        where = "after the last entry" if first is None else f"at entry {first}"
        problem = (
            f"The log was changed {where}: {len(entries)} entries were found, and"
            f" {found.entries} were sealed."
        )
    elif before is not None and before.hash != found.previous:
        problem = "The seal does not continue the seal of the day before."
    return SealedDay(
        day=day, entries=len(entries), seal=found, problem=problem, first_difference=first
    )


def _day_of(second: int) -> str:
    return datetime.fromtimestamp(second, UTC).date().isoformat()


def _day_after(day: str) -> str:
    return date.fromordinal(date.fromisoformat(day).toordinal() + 1).isoformat()
