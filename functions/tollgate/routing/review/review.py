"""Reviews a routing change: its differences, broken promises, replayed traffic and label."""

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
    """A secret that only the head revision sends to this host."""

    secret: str
    host: str
    providers: tuple[str, ...]
    hosts_before: tuple[str, ...] = ()
    """Hosts to which the base revision sends the secret."""


class BrokenPromise(Struct, frozen=True):
    """A route whose promise a dated price will break."""

    route: str
    breaks: DatedBreak


class Review(Struct, frozen=True, kw_only=True):
    """The differences between two revisions, `base` and `head`, which are git commits or files."""

    base: str
    head: str
    errors: tuple[Problem, ...] = ()
    """Errors in the head revision; if there are any, it must not be used and the other fields are
    empty.
    """
    base_is_empty: str | None = None
    """The reason why the base revision has no routing to compare with; otherwise None."""
    changes: tuple[Change, ...] = ()
    secret_moves: tuple[SecretMove, ...] = ()
    deploy_first: tuple[str, ...] = ()
    """IAM permissions, and pinned pairs of host and secret, that the head revision needs and the
    base does not; they must be deployed before it is published.
    """
    promises: tuple[BrokenPromise, ...] = ()
    """Promises that hold under the base revision but are broken under the head revision."""
    replay: TrafficReplay | None = None
    """Replayed traffic; None if there is no recorded traffic."""

    @property
    def removals(self) -> tuple[Change, ...]:
        """Changes that remove something."""
        return tuple(change for change in self.changes if change.kind == "removed")

    @property
    def label(self) -> PullRequestLabel | None:
        """The most serious label that applies; None if the change affects no request."""
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
        """The number of keys with an affected request or a changed tier."""
        tiers = {change.subject for change in self.changes if change.what == "tier"}
        keys = self.replay.keys.values() if self.replay else ()
        return sum(bool(key.affected or key.tiers & tiers) for key in keys)


def find_differences(
    before: Routing, after: Routing, today: date
) -> tuple[tuple[Change, ...], tuple[BrokenPromise, ...]]:
    """Return the changes, and the promises that only `after` will break in the future."""
    old = set(find_later_breaks(before, today))
    new = dict.fromkeys(find_later_breaks(after, today))
    broken = tuple(BrokenPromise(*found) for found in new if found not in old)
    return list_changes(before, after), broken


def find_secret_moves(before: Routing, after: Routing) -> tuple[SecretMove, ...]:
    """Return the pairs of a secret and a host that exist only in `after`."""
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
    """Return the permissions and pins that only `after` needs; raise NotPermissible for invalid
    ids.
    """
    try:
        allowed = frozenset(compile_permissions(before).all_names)
    except NotPermissible:
        allowed = frozenset()
    return tuple(name for name in compile_permissions(after).all_names if name not in allowed)
