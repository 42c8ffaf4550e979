"""Holds of dead processes, and the record that such a generation gets; pure."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.ids import created_s
from tollgate.core.limits import LimitOwner
from tollgate.core.records.generation import GenerationRecord, RoutingTrace
from tollgate.stores.rules.slices import SLICE_HOLDS_MAX

# After this time a function that held money has ended: its timeout, and a margin for clocks that
# differ.
FUNCTION_TIMEOUT_S: Final = 885
_MARGIN_S: Final = 120
HOLD_LIFETIME_S: Final = FUNCTION_TIMEOUT_S + _MARGIN_S


class WalletHolds(Struct, frozen=True, kw_only=True):
    """The holds of one wallet shard, in nano-dollars by id."""

    workspace_id: str
    shard: int
    holds: Mapping[str, int]


class StateHolds(Struct, frozen=True, kw_only=True):
    """The holds in the state of a key, a member or a team, in nano-dollars by id."""

    owner: LimitOwner
    holds: Mapping[str, int]

    @property
    def workspace_id(self) -> str:
        """The workspace of the key, the member or the team."""
        return self.owner.workspace_id


class ExpiredHold(Struct, frozen=True, kw_only=True):
    """A hold past its deadline, with all its sides that were written.

    A hold may be on a second shard if its write was delivered twice.
    """

    id: str
    workspace_id: str
    wallets: Sequence[WalletHolds]
    states: Sequence[StateHolds]

    @property
    def key_id(self) -> str:
        """Id of the key, empty if the key's side was never written or is settled."""
        keys = (state.owner.id for state in self.states if state.owner.level == "key")
        return next(keys, "")

    @property
    def held_nano_usd(self) -> int:
        """Amount of the side that holds most."""
        written_sides: list[WalletHolds | StateHolds] = [*self.wallets, *self.states]
        return max(side.holds[self.id] for side in written_sides)


class SweepReport(Struct, frozen=True, kw_only=True):
    """The counts of one run of the sweeper."""

    found: int
    """Number of expired holds."""
    settled: int
    """Number of expired holds that were settled."""
    oldest_age_s: float
    """Age of the oldest hold, expired or not; 0 without holds."""
    crowded: Mapping[LimitOwner, int] = field(default_factory=dict)
    """Number of holds of each level that has too many of them on one item."""

    @property
    def counts(self) -> dict[str, float]:
        """Counts for the log line of the run."""
        return {
            "found": self.found,
            "settled": self.settled,
            "oldest_age_s": self.oldest_age_s,
            "crowded": len(self.crowded),
        }


def expired_holds(items: Iterable[WalletHolds | StateHolds], now_s: float) -> Sequence[ExpiredHold]:
    """Group expired holds by their id, oldest first.

    One side is enough to expire a hold, but only all sides together name its workspace and key.
    """
    wallets: dict[str, list[WalletHolds]] = {}
    states: dict[str, list[StateHolds]] = {}
    for item in items:
        for hold_id in item.holds:
            if created_s(hold_id) + HOLD_LIFETIME_S < now_s:
                if isinstance(item, WalletHolds):
                    wallets.setdefault(hold_id, []).append(item)
                else:
                    states.setdefault(hold_id, []).append(item)
    return [
        ExpiredHold(
            id=hold_id,
            workspace_id=(states.get(hold_id) or wallets[hold_id])[0].workspace_id,
            wallets=wallets.get(hold_id, ()),
            states=states.get(hold_id, ()),
        )
        for hold_id in sorted(wallets.keys() | states.keys())
    ]


def crowded_levels(items: Iterable[WalletHolds | StateHolds]) -> Mapping[LimitOwner, int]:
    """Return the number of holds of each level that has too many of them on one item."""
    holds: Counter[LimitOwner] = Counter()
    crowded = set()
    for item in items:
        if isinstance(item, StateHolds) and item.owner.above_key is not None:
            owner = replace(item.owner, slice=0)
            holds[owner] += len(item.holds)
            if len(item.holds) > SLICE_HOLDS_MAX:
                crowded.add(owner)
    return {owner: holds[owner] for owner in crowded}


def pays(record: GenerationRecord, owner: LimitOwner) -> bool:
    """Return True if a generation's record names this slice of a state, which then pays.

    Another slice may have a hold of the same id if the hold's write was delivered twice.
    """
    above = owner.above_key
    return owner.slice == (record.slices.get(above, 0) if above is not None else 0)


def lost_record(expired: ExpiredHold) -> GenerationRecord:
    """Make the record of a generation whose process died, at cost 0.

    Holds that were left by refused attempts, or by writes that arrived too late, look the same.
    Therefore a lost generation is never charged.
    """
    return GenerationRecord(
        id=expired.id,
        created_s=created_s(expired.id),
        workspace_id=expired.workspace_id,
        key_id=expired.key_id,
        outcome="lost",
        streamed=False,
        catalog_sha="",
        trace=RoutingTrace(
            requested_model="",
            route=None,
            rule=None,
            draw_key_hash="",
            tier=None,
            capabilities=(),
            estimated_input_tokens=0,
            output_tokens_max=None,
        ),
        held_nano_usd=expired.held_nano_usd,
    )
