"""Holds on a state that is divided into slices, each an item with a part of each limit.

A hold goes to one slice, chosen by the hold's id so that the load is spread. Usually that slice has
room, and the hold costs one write, as on an undivided state. If the slice refuses the hold, all
slices are read in one call. If they have too little together, the hold is refused; otherwise it
goes to a slice that has room. `rules/slices.py` explains the parts with an example.

This module is imported with the first level that has slices; most levels have none.
"""

from collections.abc import Mapping
from typing import Final, Protocol

from msgspec.structs import replace

from tollgate.aws.attributes import Item
from tollgate.aws.failures import StoreUnavailable
from tollgate.core.errors import GatewayError
from tollgate.core.ids import created_s
from tollgate.core.limits import LimitOwner
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

# Maximum number of attempts, if other requests take the room that was read.
_ROUNDS_MAX: Final = 3


class SlicedStates(Protocol):
    """States that may be divided into slices."""

    async def hold(
        self, owner: LimitOwner, hold_id: str, request: KeyHoldRequest
    ) -> KeyHold | GatewayError:
        """Place a hold on one slice; return a refusal if the slice has too little."""

    async def read_slices(self, owner: LimitOwner, slices: int) -> dict[LimitOwner, Item]:
        """Return the items of a state's slices in order."""

    def now_us(self) -> int:
        """Return the current time in microseconds, the unit of rates."""


async def hold_on_slices(
    states: SlicedStates, owner: LimitOwner, hold_id: str, request: KeyHoldRequest
) -> KeyHold | GatewayError:
    """Place the hold on the slice that its id selects, or else on a slice that has enough.

    Return a refusal if no slice can take the hold. Raise HoldUnknown and StoreUnavailable as
    `KeyStates.hold` does.
    """
    # With the maximum number of slices in the request, a slice that refuses does not look for
    # further slices itself.
    on_one_slice = replace(request, slices=SLICES_MAX)
    first = replace(owner, slice=shard_order(hold_id, request.slices)[0])
    # The first slice must cover the whole amount, because another slice may have enough if this
    # slice does not.
    outcome = await states.hold(first, hold_id, replace(on_one_slice, covered=True))
    if isinstance(outcome, KeyHold):
        return outcome
    count = request.slices
    for _ in range(_ROUNDS_MAX):
        items = await states.read_slices(owner, count)
        stored_count = max(map(count_slices, items.values()), default=1)
        if stored_count > count:
            count = stored_count
            items = await states.read_slices(owner, count)
        now_us = states.now_us()
        slices = {slice_: read_key_state(item, now_us) for slice_, item in items.items()}
        choice = _choose(owner, slices, hold_id, on_one_slice, now_us=now_us)
        if isinstance(choice, GatewayError):
            return choice
        for candidate in choice:
            outcome = await states.hold(candidate, hold_id, on_one_slice)
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
    """Return the slices that can take a hold, those with the most room first, or a refusal.

    If all slices together have too little, the refusal states the limits of the whole level.
    """
    if not slices:
        return key_refused()

    def step_of(state: KeyState) -> KeyHoldAttempt | GatewayError:
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
    whole_step = step_of(whole)
    if isinstance(whole_step, GatewayError):
        return whole_step
    steps = {
        slice_: step_of(slice_of_whole(state, whole, second))
        for slice_, state in slices.items()
        if not is_closed(state.rate)
    }
    attempts = {slice_: step for slice_, step in steps.items() if isinstance(step, KeyHoldAttempt)}
    if attempts:
        return sorted(
            attempts,
            key=lambda slice_: (-attempts[slice_].amount_nano_usd, -attempts[slice_].tokens),
        )
    # The level has enough in total, but no slice alone does. Report the refusal of the slice that
    # is closest to admitting the request, preferably a temporary refusal, as a state without slices
    # would.
    refusals = [step for step in steps.values() if isinstance(step, GatewayError)]
    return min(
        refusals,
        key=lambda refusal: (
            refusal.retry_after_s is None,
            -_remaining(refusal),
            refusal.retry_after_s or 0.0,
        ),
    )


def _remaining(refusal: GatewayError) -> int:
    return 0 if refusal.limit is None else refusal.limit.remaining
