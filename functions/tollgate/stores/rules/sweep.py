"""Pure rules for the holds of dead processes, and for the records of their generations."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import islice
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.ids import created_s
from tollgate.core.limits import LimitOwner
from tollgate.core.records.generation import GenerationRecord, RoutingTrace
from tollgate.stores.rules.account import HOLDS_MAX, KeyState
from tollgate.stores.rules.slices import SLICE_HOLDS_MAX

# Age at which the function that placed a hold must have ended: the function's timeout plus a margin
# for clock differences.
FUNCTION_TIMEOUT_S: Final = 885
_MARGIN_S: Final = 120
HOLD_LIFETIME_S: Final = FUNCTION_TIMEOUT_S + _MARGIN_S
# Maximum number of holds that the condition of one write names.
_WAITING_MAX: Final = 32


class WalletHolds(Struct, frozen=True, kw_only=True):
    """The holds on one wallet shard, in nano-dollars by hold id."""

    workspace_id: str
    shard: int
    holds: Mapping[str, int]


class StateHolds(Struct, frozen=True, kw_only=True):
    """The holds on the state of a key, member or team, in nano-dollars by hold id."""

    owner: LimitOwner
    holds: Mapping[str, int]

    @property
    def workspace_id(self) -> str:
        """The workspace of the key, the member or the team."""
        return self.owner.workspace_id


class ExpiredHold(Struct, frozen=True, kw_only=True):
    """An expired hold, with the items that contain it.

    If a write was delivered twice, the hold may be on two wallet shards.
    """

    id: str
    workspace_id: str
    wallets: Sequence[WalletHolds]
    states: Sequence[StateHolds]

    @property
    def key_id(self) -> str:
        """Id of the key; empty if the key's state does not contain the hold."""
        keys = (state.owner.id for state in self.states if state.owner.level == "key")
        return next(keys, "")

    @property
    def held_nano_usd(self) -> int:
        """Largest held amount on an item."""
        written_sides: list[WalletHolds | StateHolds] = [*self.wallets, *self.states]
        return max(side.holds[self.id] for side in written_sides)


class SweepReport(Struct, frozen=True, kw_only=True):
    """The counts from one run of the sweeper."""

    found: int
    """Number of expired holds."""
    settled: int
    """Number of expired holds that were settled."""
    oldest_age_s: float
    """Age of the oldest hold, even if that hold has not expired; 0 if there are no holds."""
    crowded: Mapping[LimitOwner, int] = field(default_factory=dict)
    """The number of holds of each level whose state item has too many."""

    @property
    def counts(self) -> dict[str, float]:
        """Counts for the log."""
        return {
            "found": self.found,
            "settled": self.settled,
            "oldest_age_s": self.oldest_age_s,
            "crowded": len(self.crowded),
        }


def without_waiting(state: KeyState, hold_ids: Iterable[str], now_s: float) -> KeyState:
    """Return a full state in which holds of submissions to providers take no place.

    Such holds are those that are older than the process of any request may be.
    """
    if not state.concurrency <= state.holds < HOLDS_MAX:
        return state
    old = (id_ for id_ in hold_ids if created_s(id_) + HOLD_LIFETIME_S < now_s)
    waiting = tuple(islice(old, min(_WAITING_MAX, HOLDS_MAX - state.concurrency)))
    return replace(state, holds=state.holds - len(waiting), waiting=waiting)


def without_holds(
    item: WalletHolds | StateHolds, left_out: Collection[str]
) -> WalletHolds | StateHolds:
    """Return an item without the holds with these ids."""
    return replace(item, holds={id_: it for id_, it in item.holds.items() if id_ not in left_out})


def expired_holds(items: Iterable[WalletHolds | StateHolds], now_s: float) -> Sequence[ExpiredHold]:
    """Return the expired holds, oldest first, each with all the items that contain it."""
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
    """Return the number of holds of each level whose state item has too many."""
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
    """Return True if the record of a generation names this slice, so the slice pays the cost.

    If a write was delivered twice, another slice may have a hold with the same id.
    """
    above = owner.above_key
    return owner.slice == (record.slices.get(above, 0) if above is not None else 0)


def lost_record(expired: ExpiredHold) -> GenerationRecord:
    """Return the record, at cost 0, for a generation whose process died.

    Holds left behind by refused attempts and late writes look like those of a lost generation, so a
    lost generation is never charged.
    """
    return lost_generation(
        expired.id, expired.workspace_id, expired.key_id, held_nano_usd=expired.held_nano_usd
    )


def lost_generation(
    id_: str, workspace_id: str, key_id: str, *, held_nano_usd: int = 0
) -> GenerationRecord:
    """Return the record, at cost 0, that marks a generation as lost."""
    return GenerationRecord(
        id=id_,
        created_s=created_s(id_),
        workspace_id=workspace_id,
        key_id=key_id,
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
        held_nano_usd=held_nano_usd,
    )
