"""A filter for generations, and sums of generations by day, model, provider and key."""

from collections.abc import AsyncGenerator, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.clock import DAY_S
from tollgate.core.principal import MEMBER_LABEL, SOURCE_LABEL
from tollgate.core.records.generation import GenerationRecord, Outcome
from tollgate.core.usage import Usage

# The label of a key that holds the id of its team.
TEAM_LABEL: Final = "team"
CALLER_LABELS_MAX: Final = 1_000
# The maximum number of rows read for one reply: 20,000 are read per second, and API Gateway allows
# 29 s.
ROWS_READ_MAX: Final = 400_000
# Replaces new label values once a day has too many; no caller can state this value.
OTHERS: Final = "(others)"
# Separates a key's id from its callers' labels in a row's sort key; no id contains `~`.
BEFORE_STATED: Final = "~"
_Stated = tuple[tuple[str, str], ...]
_Owners = tuple[str, str]
# A tuple of model, provider, key, callers' labels, and the team and member if they are known.
_Place = tuple[str, str, str, _Stated, _Owners | None]


class GenerationFilter(Struct, frozen=True, kw_only=True):
    """Selects generations created in [since_s, until_s), in Unix seconds; None selects all."""

    since_s: int
    until_s: int
    model: str | None = None
    """The requested model, alias or route, or the model that served."""
    provider: str | None = None
    key_id: str | None = None
    outcome: Outcome | None = None
    cost_min_nano_usd: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)
    member_id: str | None = None
    """The member that the key belonged to; labels that callers stated are ignored."""
    user: str | None = None
    """The end user as the request stated it."""

    def accepts(self, record: GenerationRecord) -> bool:
        """Return whether the filter selects a record; the record's time is not checked."""
        return (
            self.model in (None, record.model, record.trace.requested_model)
            and self.provider in (None, record.provider)
            and self.key_id in (None, record.key_id)
            and self.outcome in (None, record.outcome)
            and self.cost_min_nano_usd <= record.cost_nano_usd
            and self.labels.items() <= record.all_labels.items()
            and self.member_id in (None, record.labels.get(MEMBER_LABEL))
            and self.user in (None, record.user)
        )

    @property
    def narrows(self) -> bool:
        """True if the filter has a condition besides the time."""
        anything = GenerationFilter(since_s=self.since_s, until_s=self.until_s)
        return self != anything


class ActivityRow(Struct, frozen=True, kw_only=True):
    """The usage of one key, model, provider and set of callers' labels on one UTC day.

    A key that was moved has a row for each team and member that it belonged to on the day.
    """

    day: str
    """The day as `2026-11-21`."""
    model: str | None
    """The model that served, or that was tried first; None if no provider was called."""
    provider: str | None
    """None if no attempt served."""
    key_id: str
    key_label: str = ""
    """The label of the key's last generation of the day."""
    labels: Mapping[str, str] = field(default_factory=dict)
    """The labels of the key's last generation of the day."""
    caller_labels: Mapping[str, str] = field(default_factory=dict)
    """The labels that the callers of these generations stated about themselves."""
    moved: bool = False
    """True if the key was moved to another team or member later on the day."""
    requests: int = 0
    failed: int = 0
    """The number of generations whose outcome is not `ok`."""
    cost_nano_usd: int = 0
    usage: Usage = field(default_factory=Usage)

    def matches(self, wanted: GenerationFilter) -> bool:
        """Return whether a filter's model, provider, key and labels select the row.

        A row has the model that served or was tried, but not the requested model.
        """
        return (
            wanted.model in (None, self.model)
            and wanted.provider in (None, self.provider)
            and wanted.key_id in (None, self.key_id)
            and wanted.labels.items() <= self.all_labels.items()
            and wanted.member_id in (None, self.labels.get(MEMBER_LABEL))
        )

    @property
    def all_labels(self) -> Mapping[str, str]:
        """The labels of the key and of the callers; the key's labels take precedence."""
        return {**self.caller_labels, **self.labels}

    @property
    def place(self) -> str:
        """The row's unique sort key among the rows of a workspace, oldest day first.

        The sort key consists of day, model, provider and API key, followed by the callers' labels,
        which older code reads as part of the API key. If a key was moved, the row of its earlier
        team and member ends with a hash of both.
        """
        day = self.day.replace("-", "")
        place = f"{day}#{self.model or '-'}#{self.provider or '-'}#{self.key_id or '-'}"
        if self.caller_labels or self.moved:
            stated = self.caller_labels
            texts = ",".join(f"{name}={stated[name]}" for name in sorted(stated))
            place = f"{place}{BEFORE_STATED}{texts}"
        if self.moved:
            # Hashed, because labels may contain any character, including the separators of a place.
            owners = "\n".join(_owners(self.labels))
            place = f"{place}{BEFORE_STATED}{sha256(owners.encode()).hexdigest()[:16]}"
        return place


class KnownDays(Struct, frozen=True, kw_only=True):
    """Days, written as `2026-11-21`, grouped by the state of their figures."""

    closed_days: tuple[str, ...] = ()
    """Days whose sums are stored and final."""
    live_days: tuple[str, ...] = ()
    """Days whose records were counted just now, or at most a minute ago."""
    partial_days: tuple[str, ...] = ()
    """Live days with corrupt records, or with more records than a live count reads."""
    missing_days: tuple[str, ...] = ()
    """Days whose records expired before sums were stored, so their figures are unknown."""
    last_record_s: int | None = None
    """Unix second of the most recent record in the live days; None if they have no records."""


class Activity(KnownDays, frozen=True, kw_only=True):
    """The sums of several days; rows are sorted by `place`."""

    rows: tuple[ActivityRow, ...]


class ActivityStream(KnownDays, frozen=True, kw_only=True):
    """The sums of several days; rows are streamed in the order of `place`."""

    rows: AsyncGenerator[ActivityRow, None]

    async def collect(self) -> Activity:
        """Return the sums with all of their rows in memory."""
        known = {name: getattr(self, name) for name in KnownDays.__struct_fields__}
        return Activity(rows=tuple([row async for row in self.rows]), **known)


class ClosedDay(Struct, frozen=True, kw_only=True):
    """A day of a workspace whose records and sums are final."""

    workspace_id: str
    day: str
    """The day as `2026-11-21`."""
    start_s: int
    cost_nano_usd: int
    requests: int
    exported: bool = False


def days_within(since_s: int, until_s: int) -> tuple[int, ...]:
    """Return the first seconds of the UTC days that lie at least partly in [since_s, until_s)."""
    return tuple(range(since_s // DAY_S * DAY_S, until_s, DAY_S))


def day_of(second: int) -> str:
    """Return the UTC day of a Unix second, as `2026-11-21`."""
    return datetime.fromtimestamp(second, UTC).date().isoformat()


def summarize_day(day: str, records: Iterable[GenerationRecord]) -> tuple[ActivityRow, ...]:
    """Sum all records of one day into rows; the order of the records does not matter."""
    summary = DaySummary(day)
    for record in sorted(records, key=lambda record: record.id):
        summary.add(record)
    return summary.rows()


class DaySummary:
    """Sums the records of one day without storing them. Records are added oldest first.

    The number of label sets on a day is bounded, because callers choose the names of their
    sessions. The record of a killed process has no labels, and is counted for the last known team
    and member of its key.
    """

    def __init__(self, day: str) -> None:
        self._day = day
        self._sums: dict[_Place, _Sum] = {}
        self._last: dict[str, _Owners] = {}
        self._sets = _LabelSets()
        self.requests = 0

    def add(self, record: GenerationRecord) -> None:
        """Add a record, whose id must be higher than the ids of earlier records."""
        stated = self._sets.admit(tuple(sorted(record.caller_labels.items())))
        owners = None
        if record.key_label or record.labels:
            owners = self._last[record.key_id] = _owners(record.labels)
        # A failure is counted for the model that was tried first. Requested
        # names are text of callers, and a row for each of them could make any number of rows.
        model = record.model or (record.attempts[0].model if record.attempts else None)
        place = (model or "", record.provider or "", record.key_id, stated, owners)
        found = self._sums.get(place)
        if found is None:
            found = self._sums[place] = _Sum(model=model, provider=record.provider)
        found.add(record)
        self.requests += 1

    def rows(self) -> tuple[ActivityRow, ...]:
        """Return the rows of the day."""
        rows: dict[tuple[str, str, str, _Owners, _Stated], ActivityRow] = {}
        # Sums without a known team and member come last: they are added to the row of their key's
        # last team and member.
        for place, found in sorted(self._sums.items(), key=lambda each: each[0][-1] is None):
            model, provider, key_id, stated, owners = place
            last = self._last.get(key_id, ("", ""))
            row_place = (model, provider, key_id, last if owners is None else owners, stated)
            row = found.row(
                day=self._day,
                key_id=key_id,
                stated=stated,
                moved=owners is not None and owners != last,
            )
            earlier_row = rows.get(row_place)
            rows[row_place] = row if earlier_row is None else _add_rows(earlier_row, row)
        return tuple(rows[place] for place in sorted(rows))


class _Sum:
    """The sums of the generations that share a place, and the labels of the last generation."""

    def __init__(self, *, model: str | None, provider: str | None) -> None:
        self._model = model
        self._provider = provider
        self._key_label = ""
        self._labels: Mapping[str, str] = {}
        self._requests = self._failed = self._cost_nano_usd = 0
        self._usage: dict[str, int] = {}

    def add(self, record: GenerationRecord) -> None:
        """Add a record, whose labels replace the labels of earlier records."""
        self._key_label, self._labels = record.key_label, record.labels
        self._requests += 1
        self._failed += record.outcome != "ok"
        self._cost_nano_usd += record.cost_nano_usd
        for name, count in record.usage.reported():
            self._usage[name] = self._usage.get(name, 0) + count

    def row(self, *, day: str, key_id: str, stated: _Stated, moved: bool) -> ActivityRow:
        """Return the row of these sums."""
        return ActivityRow(
            day=day,
            model=self._model,
            provider=self._provider,
            key_id=key_id,
            key_label=self._key_label,
            labels=self._labels,
            caller_labels=dict(stated),
            moved=moved,
            requests=self._requests,
            failed=self._failed,
            cost_nano_usd=self._cost_nano_usd,
            usage=Usage(**self._usage),
        )


def _add_rows(row: ActivityRow, other: ActivityRow) -> ActivityRow:
    """Return the sum of two rows, with the labels of the first."""
    return replace(
        row,
        requests=row.requests + other.requests,
        failed=row.failed + other.failed,
        cost_nano_usd=row.cost_nano_usd + other.cost_nano_usd,
        usage=row.usage.plus(other.usage),
    )


def _owners(labels: Mapping[str, str]) -> _Owners:
    """Return the team and the member that a generation's key had."""
    return labels.get(TEAM_LABEL, ""), labels.get(MEMBER_LABEL, "")


class _LabelSets:
    """The sets of callers' labels on a day: at most CALLER_LABELS_MAX sets, and as many again that
    contain OTHERS.
    """

    def __init__(self) -> None:
        self._sets: set[_Stated] = set()
        self._values: set[tuple[str, str]] = set()

    def admit(self, stated: _Stated) -> _Stated:
        """Return the label set of a record; once the limit is reached, OTHERS replaces new values.

        Known values stay, so that a known developer keeps a separate row even on a day with too
        many sessions. Sources stay, because statements list them and no caller can state one.
        """
        if stated and stated not in self._sets and len(self._sets) >= CALLER_LABELS_MAX:
            stated = tuple(
                (name, value if name == SOURCE_LABEL or (name, value) in self._values else OTHERS)
                for name, value in stated
            )
            if stated not in self._sets and len(self._sets) >= 2 * CALLER_LABELS_MAX:
                stated = tuple(
                    (name, value if name == SOURCE_LABEL else OTHERS) for name, value in stated
                )
        if stated:
            self._sets.add(stated)
            self._values.update(stated)
        return stated
