"""The sides of a hold: the states that it is written to, and the hold that they make together."""

from collections.abc import Callable, Sequence

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.ids import created_s
from tollgate.core.limits import LimitOwner, SessionLimit, TierLimits
from tollgate.core.principal import Principal
from tollgate.stores.keys.key_holds import KeyHold, KeyHoldRequest
from tollgate.stores.keys.states import KeyStates
from tollgate.stores.money.wallets import WalletHold
from tollgate.stores.ports.base import Hold, LevelHold
from tollgate.stores.rules.budget_left import least_percent_left
from tollgate.stores.rules.periods import bucket_names
from tollgate.stores.rules.quotas import QuotaRequest


class HoldRequest(Struct, frozen=True, kw_only=True):
    """A generation's request for a hold on all sides."""

    principal: Principal
    amount_nano_usd: int
    tokens: int
    covered: bool
    tier: TierLimits | None
    session: SessionLimit | None
    models: tuple[str, ...]
    """Models that may answer."""
    meanwhile: Callable[[], None] | None
    """Callback for work that can be done while the writes are in flight."""


def read_budget_left(
    keys: KeyStates, principal: Principal, tier: TierLimits | None, second: int
) -> int | None:
    """Return the smallest remaining share of any limit, as stated in the replies to earlier
    holds.
    """
    workspace_id = principal.workspace_id
    key = LimitOwner(level="key", id=principal.key_id, workspace_id=workspace_id)
    states = [[state.within(tier, second) for state in keys.last_states(key, 1)]]
    for level in principal.levels:
        if level.limited:
            owner = LimitOwner(level=level.level, id=level.id, workspace_id=workspace_id)
            states.append(keys.last_states(owner, level.slices))
    return least_percent_left(states, second, principal.key_quotas)


def states_of(request: HoldRequest) -> list[tuple[LimitOwner, KeyHoldRequest]]:
    """Return the owner and request for each state that a hold is written to, the key first."""
    principal = request.principal
    workspace_id = principal.workspace_id
    key_request = KeyHoldRequest(
        amount_nano_usd=request.amount_nano_usd,
        tokens=request.tokens,
        covered=request.covered,
        old_secret=principal.old_secret,
        tier=request.tier,
    )
    key = LimitOwner(level="key", id=principal.key_id, workspace_id=workspace_id)
    quotas = QuotaRequest.of(
        principal,
        request.models,
        request.amount_nano_usd,
        tokens=request.tokens,
        covered=request.covered,
    )
    warns_from_percent = principal.warns_from_percent
    states = [(key, replace(key_request, quotas=quotas, warns_from_percent=warns_from_percent))]
    for level in principal.levels:
        if level.limited:
            owner = LimitOwner(level=level.level, id=level.id, workspace_id=workspace_id)
            # A tier limits each key separately, so its limits do not apply to levels.
            states.append(
                (owner, replace(key_request, tier=None, old_secret=False, slices=level.slices))
            )
    if request.session is not None:
        session = f"{principal.key_id}#{request.session.id}"
        owner = LimitOwner(level="session", id=session, workspace_id=workspace_id)
        states.append((owner, replace(key_request, tier=None, session=request.session)))
    return states


def whole_hold(
    request: HoldRequest, hold_id: str, wallet: WalletHold, states: Sequence[KeyHold]
) -> Hold:
    """Return the hold that all sides have accepted; the key's state comes first."""
    key, *levels = states
    return Hold(
        id=hold_id,
        workspace_id=request.principal.workspace_id,
        key_id=request.principal.key_id,
        shard=wallet.shard,
        wallet_nano_usd=wallet.amount_nano_usd,
        key_nano_usd=key.amount_nano_usd,
        key_buckets=bucket_names(created_s(hold_id)),
        key_tokens=key.tokens,
        rate_limit=key.rate_limit,
        token_limit=key.token_limit,
        warning=key.warning,
        covered=request.covered,
        tier=request.tier,
        levels=tuple(
            LevelHold(
                level=side,
                id=state.owner.id,
                nano_usd=state.amount_nano_usd,
                tokens=state.tokens,
                slice=state.owner.slice,
            )
            for state in levels
            if (side := state.owner.beside_key) is not None
        ),
        quotas=key.quotas.holds,
        used_up=key.quotas.used_up,
        crowded=wallet.crowded,
    )
