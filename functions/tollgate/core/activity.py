"""Which generations are asked for, and what they add up to by day."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Final

from msgspec import Struct, field

from tollgate.core.generation import GenerationRecord, Outcome
from tollgate.core.usage import Usage

DAY_S: Final = 86_400


class GenerationFilter(Struct, frozen=True, kw_only=True):
    """Generations made in [since_s, until_s), Unix seconds; None or no labels lets all pass."""

    since_s: int
    until_s: int
    model: str | None = None
    provider: str | None = None
    key_id: str | None = None
    outcome: Outcome | None = None
    cost_min_nano_usd: int = 0
    labels: Mapping[str, str] = field(default_factory=dict)

    def accepts(self, record: GenerationRecord) -> bool:
        """Whether a record of that time is one of those that are asked for."""
        return (
            self.model in (None, record.model)
            and self.provider in (None, record.provider)
            and self.key_id in (None, record.key_id)
            and self.outcome in (None, record.outcome)
            and self.cost_min_nano_usd <= record.cost_nano_usd
            and self.labels.items() <= record.labels.items()
        )

    @property
    def narrows(self) -> bool:
        """Whether it leaves out anything but by time."""
        anything = GenerationFilter(since_s=self.since_s, until_s=self.until_s)
        return self != anything


class ActivityRow(Struct, frozen=True, kw_only=True):
    """What one key used of one model at one provider on one UTC day (`2026-11-21`).

    `model` and `provider` are None for what nobody served; `failed` counts every outcome but `ok`.
    The label and the labels are those of the key's last generation of the day.
    """

    day: str
    model: str | None
    provider: str | None
    key_id: str
    key_label: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    requests: int = 0
    failed: int = 0
    cost_nano_usd: int = 0
    usage: Usage = field(default_factory=Usage)

    def matches(self, wanted: GenerationFilter) -> bool:
        """Whether a filter's model, provider, key and labels let the row pass."""
        return (
            wanted.model in (None, self.model)
            and wanted.provider in (None, self.provider)
            and wanted.key_id in (None, self.key_id)
            and wanted.labels.items() <= self.labels.items()
        )


class Activity(Struct, frozen=True, kw_only=True):
    """Rows, oldest day first; of `partial_days` too much is going on to count it all live."""

    rows: tuple[ActivityRow, ...]
    partial_days: tuple[str, ...] = ()


def days_within(since_s: int, until_s: int) -> tuple[int, ...]:
    """The first seconds of the UTC days that lie at least partly in [since_s, until_s)."""
    return tuple(range(since_s // DAY_S * DAY_S, until_s, DAY_S))


def day_of(second: int) -> str:
    """The UTC day of a Unix second: `2026-11-21`."""
    return datetime.fromtimestamp(second, UTC).date().isoformat()


def activity(day: str, records: Iterable[GenerationRecord]) -> tuple[ActivityRow, ...]:
    """The rows of one day from all its records, in any order: the same rows every time."""
    rows: dict[tuple[str, str, str], ActivityRow] = {}
    for record in sorted(records, key=lambda record: record.id):
        place = (record.model or "", record.provider or "", record.key_id)
        row = rows.get(place) or ActivityRow(
            day=day, model=record.model, provider=record.provider, key_id=record.key_id
        )
        known = bool(record.key_label or record.labels)
        rows[place] = ActivityRow(
            day=day,
            model=record.model,
            provider=record.provider,
            key_id=record.key_id,
            key_label=record.key_label if known else row.key_label,
            labels=record.labels if known else row.labels,
            requests=row.requests + 1,
            failed=row.failed + (record.outcome != "ok"),
            cost_nano_usd=row.cost_nano_usd + record.cost_nano_usd,
            usage=row.usage.plus(record.usage),
        )
    return tuple(rows[place] for place in sorted(rows))
