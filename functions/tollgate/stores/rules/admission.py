"""Decides from stored states whether a request may do costly work before its hold."""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from tollgate.core.errors import GatewayError
from tollgate.core.ids import created_s
from tollgate.core.limits import LimitOwner, TierLimits
from tollgate.stores.rules.account import (
    HOLDS_MAX,
    KeyState,
    WalletState,
    key_step,
    too_many_holds,
    workspace_locked,
)
from tollgate.stores.rules.credit_refusals import no_credit


class WaitingRequests:
    """The admitted requests of this process that do not have a hold yet, by key."""

    def __init__(self) -> None:
        self._ids: dict[str, set[str]] = {}

    def has(self, key_id: str, request_id: str) -> bool:
        """Return whether a request is waiting for its hold."""
        return request_id in self._ids.get(key_id, ())

    def count(self, key_id: str) -> int:
        """Return how many of a key's requests are waiting for their holds."""
        return len(self._ids.get(key_id, ()))

    def add(self, key_id: str, request_id: str) -> None:
        """Count a request."""
        self._ids.setdefault(key_id, set()).add(request_id)

    def discard(self, key_id: str, request_id: str) -> None:
        """Stop counting a request; ignore a request that is not counted."""
        ids = self._ids.get(key_id, set())
        ids.discard(request_id)
        if not ids:
            self._ids.pop(key_id, None)


# The smallest hold: one nano-dollar and one token.
_LEAST: Final = 1


def refuse_by_state(
    state: KeyState | None,
    owner: LimitOwner,
    request_id: str,
    *,
    waiting: int,
    now_us: int,
    tier: TierLimits | None = None,
) -> GatewayError | None:
    """Return the refusal that even the smallest hold on a key or level would get; otherwise None.

    `waiting` is the number of admitted requests whose holds are not written yet; each counts as a
    hold and as a request.
    """
    if state is not None:
        state = state.within(tier, created_s(request_id))
        rate = state.rate
        for _ in range(min(waiting, rate.burst)):
            rate = rate.take(rate.form(now_us), now_us)
        state = replace(state, rate=rate, holds=state.holds + waiting)
    step = key_step(state, owner, request_id, _LEAST, now_us=now_us, tokens=_LEAST)
    if not isinstance(step, GatewayError):
        return None
    if waiting:
        # Requests that wait have been admitted already, so this refusal is not general.
        step.is_general = False
    return step


def refuse_by_wallet(shards: Iterable[WalletState], request_id: str) -> GatewayError | None:
    """Return the refusal that even the smallest hold on a workspace's shards would get; otherwise
    None.
    """
    any_full = False
    for shard in shards:
        if shard.locked:
            return workspace_locked(request_id, paused=shard.paused)
        if shard.available_nano_usd < _LEAST:
            continue
        if shard.holds < HOLDS_MAX:
            return None
        any_full = True
    return too_many_holds() if any_full else no_credit()
