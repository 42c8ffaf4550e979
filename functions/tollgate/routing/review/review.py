"""What a change of routing comes to: differences, promises, traffic; and how grave it is."""

from datetime import date
from typing import Literal

from msgspec import Struct

from tollgate.routing.file.problems import Problem
from tollgate.routing.file.promise_checks import DatedBreak, find_later_breaks
from tollgate.routing.review.diff import Change, changes
from tollgate.routing.review.replay import TrafficReplay
from tollgate.routing.schema import Routing

PullRequestLabel = Literal["routing:invalid", "routing:breaking", "routing:price", "routing:route"]


class BrokenPromise(Struct, frozen=True):
    """A route whose promise is kept until a day that is known already."""

    route: str
    breaks: DatedBreak


class Review(Struct, frozen=True, kw_only=True):
    """Two revisions by their names, and what becomes different from one to the other.

    With `errors`, head must not be used and nothing else is said. `base_is_empty` is why there is
    nothing to compare with, None where there is. `promises` are only those that head breaks newly.
    """

    base: str
    head: str
    errors: tuple[Problem, ...] = ()
    base_is_empty: str | None = None
    changes: tuple[Change, ...] = ()
    promises: tuple[BrokenPromise, ...] = ()
    replay: TrafficReplay | None = None

    @property
    def removals(self) -> tuple[Change, ...]:
        """What is there no more."""
        return tuple(change for change in self.changes if change.kind == "removed")

    @property
    def label(self) -> PullRequestLabel | None:
        """What kind of change it is, the gravest that applies; None if nobody would notice."""
        noticed = [change for change in self.changes if change.what != "note"]
        replay = self.replay or TrafficReplay()
        if self.errors:
            return "routing:invalid"
        if self.removals or self.promises or replay.refused:
            return "routing:breaking"
        if any(change.what in ("price", "billing") for change in noticed) or replay.repriced:
            return "routing:price"
        return "routing:route" if noticed or replay.changes_anything else None

    @property
    def keys_affected(self) -> int:
        """How many keys have a request that changes, or are of a tier that does."""
        tiers = {change.subject for change in self.changes if change.what == "tier"}
        keys = self.replay.keys.values() if self.replay else ()
        return sum(bool(key.affected or key.tiers & tiers) for key in keys)


def find_differences(
    before: Routing, after: Routing, today: date
) -> tuple[tuple[Change, ...], tuple[BrokenPromise, ...]]:
    """The changes, and the promises that are broken from a day to come on, and were not before."""
    old = set(find_later_breaks(before, today))
    new = dict.fromkeys(find_later_breaks(after, today))
    broken = tuple(BrokenPromise(*found) for found in new if found not in old)
    return changes(before, after), broken
