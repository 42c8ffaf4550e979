"""The review of a change of routing: differences, promises, replayed traffic, and its label."""

from datetime import date
from typing import Literal

from msgspec import Struct

from tollgate.routing.file.key_hosts import list_key_hosts
from tollgate.routing.file.permissions import NotPermissible, compile_permissions
from tollgate.routing.file.problems import Problem
from tollgate.routing.file.promise_checks import DatedBreak, find_later_breaks
from tollgate.routing.review.diff import Change, list_changes
from tollgate.routing.review.replay import TrafficReplay
from tollgate.routing.routing_file import Routing

PullRequestLabel = Literal[
    "routing:security", "routing:invalid", "routing:breaking", "routing:price", "routing:route"
]


class SecretMove(Struct, frozen=True, kw_only=True):
    """A secret that goes to a host which the base never sends it to."""

    secret: str
    host: str
    providers: tuple[str, ...]
    hosts_before: tuple[str, ...] = ()  # those that the base sends it to


class BrokenPromise(Struct, frozen=True):
    """A route whose promise a dated price will break."""

    route: str
    breaks: DatedBreak


class Review(Struct, frozen=True, kw_only=True):
    """The differences between two revisions, `base` and `head`: commits of git, or files."""

    base: str
    head: str
    errors: tuple[Problem, ...] = ()  # of head, which then must not be used: the rest is empty
    base_is_empty: str | None = None  # the reason for which base has no routing to compare with
    changes: tuple[Change, ...] = ()
    secret_moves: tuple[SecretMove, ...] = ()
    deploy_first: tuple[str, ...] = ()  # permissions and pins that head needs and base does not
    promises: tuple[BrokenPromise, ...] = ()  # those that head breaks and base does not
    replay: TrafficReplay | None = None  # None without recorded traffic

    @property
    def removals(self) -> tuple[Change, ...]:
        """The changes that remove something."""
        return tuple(change for change in self.changes if change.kind == "removed")

    @property
    def label(self) -> PullRequestLabel | None:
        """The gravest label that applies; None if no request would notice the change."""
        noticed = [change for change in self.changes if change.what != "note"]
        replay = self.replay or TrafficReplay()
        if self.secret_moves or any(problem.endangers_secret for problem in self.errors):
            return "routing:security"
        if self.errors:
            return "routing:invalid"
        if self.removals or self.promises or replay.refused:
            return "routing:breaking"
        if any(change.what in ("price", "billing") for change in noticed) or replay.repriced:
            return "routing:price"
        return "routing:route" if noticed or replay.changes_anything else None

    @property
    def keys_affected(self) -> int:
        """The number of keys with a request that changes, or with a tier that does."""
        tiers = {change.subject for change in self.changes if change.what == "tier"}
        keys = self.replay.keys.values() if self.replay else ()
        return sum(bool(key.affected or key.tiers & tiers) for key in keys)


def find_differences(
    before: Routing, after: Routing, today: date
) -> tuple[tuple[Change, ...], tuple[BrokenPromise, ...]]:
    """Return the changes, and the promises that newly break on a later day."""
    old = set(find_later_breaks(before, today))
    new = dict.fromkeys(find_later_breaks(after, today))
    broken = tuple(BrokenPromise(*found) for found in new if found not in old)
    return list_changes(before, after), broken


def find_secret_moves(before: Routing, after: Routing) -> tuple[SecretMove, ...]:
    """Return each pair of a secret and a host that `before` does not have."""
    known = list_key_hosts(before)
    return tuple(
        SecretMove(
            secret=pair.secret,
            host=pair.host,
            providers=providers,
            hosts_before=tuple(each.host for each in known if each.secret == pair.secret),
        )
        for pair, providers in list_key_hosts(after).items()
        if pair not in known
    )


def find_undeployed(before: Routing, after: Routing) -> tuple[str, ...]:
    """Return what a stack deployed with `before` refuses to publish of `after`.

    Raises NotPermissible if an id of `after` cannot stand in a policy.
    """
    try:
        allowed = frozenset(compile_permissions(before).all_names)
    except NotPermissible:
        allowed = frozenset()
    return tuple(name for name in compile_permissions(after).all_names if name not in allowed)
