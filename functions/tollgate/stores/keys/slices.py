"""Holds on a state that is spread over slices: items with a part of each limit.

Loaded with the first level that has slices; most have none.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from msgspec.structs import replace

from tollgate.core.errors import GatewayError
from tollgate.core.ids import created_s
from tollgate.core.limits import LimitOwner
from tollgate.stores.aws.attributes import Item
from tollgate.stores.aws.failures import StoreUnavailable
from tollgate.stores.keys.key_holds import KeyHold, KeyHoldRequest
from tollgate.stores.keys.state_items import count_slices, read_key_state
from tollgate.stores.rules.account import (
    KeyHoldAttempt,
    KeyState,
    key_refused,
    key_step,
    shard_order,
)
from tollgate.stores.rules.slices import SLICES_MAX, is_closed, slice_of_whole, whole_state

# Other requests may take the room that was seen, but not for ever.
_ROUNDS_MAX: Final = 3


class SlicedStates(Protocol):
    """The states of which one may be spread over slices."""

    async def hold(
        self, owner: LimitOwner, hold_id: str, request: KeyHoldRequest
    ) -> KeyHold | GatewayError:
        """Hold on one slice; return the refusal if it has too little."""

    async def read_slices(self, owner: LimitOwner, slices: int) -> dict[LimitOwner, Item]:
        """Return the items of a state's slices in order."""

    def now_us(self) -> int:
        """Return the present in the unit of rates."""


async def hold_on_slices(
    states: SlicedStates, owner: LimitOwner, hold_id: str, request: KeyHoldRequest
) -> KeyHold | GatewayError:
    """Hold on the slice that the id determines; where it has too little, on one that has enough.

    Refuses where no slice can take the hold. Raises HoldUnknown and StoreUnavailable as
    `KeyStates.hold` does.
    """
    # A slice that refuses need not look for others.
    alone = replace(request, slices=SLICES_MAX)
    first = replace(owner, slice=shard_order(hold_id, request.slices)[0])
    # The whole amount or nothing: another slice may have it.
    outcome = await states.hold(first, hold_id, replace(alone, covered=True))
    if isinstance(outcome, KeyHold):
        return outcome
    known = request.slices
    for _ in range(_ROUNDS_MAX):
        items = await states.read_slices(owner, known)
        there = max(map(count_slices, items.values()), default=1)
        if there > known:
            known = there
            items = await states.read_slices(owner, there)
        slices = {it: read_key_state(item) for it, item in items.items()}
        choice = _choose(owner, slices, hold_id, alone, now_us=states.now_us())
        if isinstance(choice, GatewayError):
            return choice
        for candidate in choice:
            outcome = await states.hold(candidate, hold_id, alone)
            if isinstance(outcome, KeyHold):
                return outcome
    raise StoreUnavailable(
        f"the slices of {owner.level} {owner.id} keep changing", maybe_applied=False
    )


def _choose(
    owner: LimitOwner,
    slices: Mapping[LimitOwner, KeyState],
    hold_id: str,
    request: KeyHoldRequest,
    *,
    now_us: int,
) -> list[LimitOwner] | GatewayError:
    """Return the slices that can take a hold, the one with most for it first, or the refusal.

    A refusal states the limits of the whole.
    """
    if not slices:
        return key_refused()

    def ask(state: KeyState) -> KeyHoldAttempt | GatewayError:
        return key_step(
            state,
            owner,
            hold_id,
            request.amount_nano_usd,
            now_us=now_us,
            tokens=request.tokens,
            covered=request.covered,
        )

    second = created_s(hold_id)
    whole = whole_state(list(slices.values()), second)
    refused = ask(whole)
    if isinstance(refused, GatewayError):
        return refused
    steps = {
        it: ask(slice_of_whole(state, whole, second))
        for it, state in slices.items()
        if not is_closed(state.rate)
    }
    able = {it: step for it, step in steps.items() if isinstance(step, KeyHoldAttempt)}
    if able:
        return sorted(able, key=lambda it: (-able[it].amount_nano_usd, -able[it].tokens))
    # Together they have enough, and none by itself: the one that lacks least speaks for all, one
    # that only has to wait a moment first. So does a state that is whole.
    refusals = [step for step in steps.values() if isinstance(step, GatewayError)]
    return min(
        refusals,
        key=lambda it: (it.retry_after_s is None, -_remaining(it), it.retry_after_s or 0.0),
    )


def _remaining(refusal: GatewayError) -> int:
    return 0 if refusal.limit is None else refusal.limit.remaining
