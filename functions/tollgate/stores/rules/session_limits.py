"""Pure rules for the limits of a session: the requests of one run of an agent, under one key."""

from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.clock import DAY_S
from tollgate.core.errors import ErrorCode, GatewayError, LedgerError
from tollgate.core.limits import LimitOwner, SessionLimit
from tollgate.core.money.amounts import usd_text
from tollgate.stores.rules.account import HOLDS_MAX, UNLIMITED, too_many_holds

# Time from the last request of a session until its count is forgotten.
SESSION_KEPT_S: Final = 7 * DAY_S


class SessionState(Struct, frozen=True, kw_only=True):
    """The money and the requests that a session has used."""

    committed_nano_usd: int = 0
    """Nano-dollars spent and held."""
    requests: int = 0
    """Number of admitted requests."""
    holds: int = 0
    """Number of holds."""


def budget_of(limit: SessionLimit) -> int:
    """Return the budget in nano-dollars; UNLIMITED without one."""
    return UNLIMITED if limit.nano_usd is None else limit.nano_usd


def requests_of(limit: SessionLimit) -> int:
    """Return the number of requests that the session may have; UNLIMITED without a limit."""
    return UNLIMITED if limit.requests is None else limit.requests


def refuse_in_session(
    state: SessionState, owner: LimitOwner, limit: SessionLimit, amount_nano_usd: int
) -> GatewayError | None:
    """Return the refusal of a hold on a session, or None.

    The whole amount must be available, so a session never costs more than its budget.
    """
    if state.requests >= requests_of(limit):
        refusal = LedgerError(
            ErrorCode.KEY_LIMIT_EXCEEDED,
            f"This session has had all {limit.requests} requests that it may have.",
        )
        refusal.limit = replace(owner.reach("requests", requests_of(limit)), id=limit.id)
        return refusal
    remaining = budget_of(limit) - state.committed_nano_usd
    if remaining < amount_nano_usd:
        refusal = LedgerError(
            ErrorCode.KEY_LIMIT_EXCEEDED,
            f"This request may cost ${usd_text(amount_nano_usd)}. Of this session's budget of "
            f"${usd_text(budget_of(limit))}, ${usd_text(max(0, remaining))} is left.",
        )
        reached = owner.reach("total", budget_of(limit), remaining=remaining)
        refusal.limit = replace(reached, id=limit.id)
        return refusal
    return too_many_holds() if state.holds >= HOLDS_MAX else None
