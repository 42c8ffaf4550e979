"""The ledger in DynamoDB, which holds money before a generation and settles the cost afterwards.

A hold has several sides: a wallet shard, the state of the key, and the states of the levels above
the key. All sides are written in parallel, each only once. If an outcome is unknown, all sides are
released and another id is tried, because the lost write may still be applied under the first id.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from tollgate.aws.failures import (
    CorruptItem,
    StoreUnavailable,
    refusing_when_unavailable,
    repeat_while_refused,
)
from tollgate.core.clock import Clock
from tollgate.core.errors import GatewayError
from tollgate.core.ids import IdSource
from tollgate.core.limits import LimitOwner, SessionLimit, TierLimits
from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.aws.holds import HoldUnknown, outcome_of
from tollgate.stores.keys.key_holds import KeyHold, KeyHoldRequest
from tollgate.stores.keys.states import KeyStates
from tollgate.stores.money.hold_sides import (
    HoldRequest,
    read_budget_left,
    states_of,
    whole_hold,
)
from tollgate.stores.money.settlements import Release, Settlements, SideWrite
from tollgate.stores.money.wallets import WalletHold, Wallets
from tollgate.stores.ports.base import Hold
from tollgate.stores.records.generations import DynamoGenerationStore
from tollgate.stores.rules.quotas import QuotaUse, topped_up, use_of

_IDS_MAX: Final = 3
# No further id is tried after this time, and the request is refused with status 503.
_HOLD_BUDGET_S: Final = 2.5
# No write of a generation record starts later than this. The engine allows 8 s for a settlement:
# the last record write can take 3.3 s, and the remaining time is for settling the hold on the
# wallet, the key and the levels.
_DECIDES_FOR_S: Final = 4.0

# Maximum number of keys for which the last refusal is remembered.
_REFUSED_MAX: Final = 4096

_StateOutcome = KeyHold | GatewayError | HoldUnknown | StoreUnavailable


class DynamoLedger:
    """Implements `stores.ports.base.Ledger`."""

    def __init__(
        self,
        wallets: Wallets,
        keys: KeyStates,
        generations: DynamoGenerationStore,
        settlements: Settlements,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._wallets = wallets
        self._keys = keys
        self._generations = generations
        self._ids = ids
        self._clock = clock
        self._settlements = settlements
        # By key id, the number of states to try before the others, because the last of them refused
        # the last hold.
        self._refused: OrderedDict[str, int] = OrderedDict()

    async def hold(
        self,
        principal: Principal,
        amount_nano_usd: int,
        first_id: str | None = None,
        *,
        tokens: int = 0,
        covered: bool = False,
        tier: TierLimits | None = None,
        session: SessionLimit | None = None,
        models: tuple[str, ...] = (),
        meanwhile: Callable[[], None] | None = None,
    ) -> Hold:
        """Hold money on wallet, key, levels and session; if all have enough, in one round trip."""
        request = HoldRequest(
            principal=principal,
            amount_nano_usd=amount_nano_usd,
            tokens=tokens,
            covered=covered,
            tier=tier,
            session=session,
            models=models,
            meanwhile=meanwhile,
        )
        holding = asyncio.ensure_future(self._hold(request, first_id))
        try:
            return await asyncio.shield(holding)
        except asyncio.CancelledError:
            # The caller disconnected during the write, so the hold is released.
            await asyncio.wait([holding])
            if holding.exception() is None:
                await self._settle_sides(holding.result(), QuotaUse(requests=0))
            raise

    def budget_left_percent(
        self, principal: Principal, *, tier: TierLimits | None = None
    ) -> int | None:
        """Return the smallest remaining share of a limit in USD, as of this process's last
        holds.
        """
        return read_budget_left(self._keys, principal, tier, int(self._clock.now_s()))

    async def top_up(self, hold: Hold, more_nano_usd: int) -> Hold:
        """Add to a hold on all its sides; raise the refusal if a side refuses.

        Sides that accepted are later settled by the larger amount that they hold. The session's
        side stays as it is, because it holds the highest cost.
        """
        topped = [level for level in hold.levels if level.level != "session"]
        with refusing_when_unavailable():
            refusals = await asyncio.gather(
                self._wallets.top_up(
                    hold.workspace_id,
                    hold.shard,
                    hold.id,
                    held_nano_usd=hold.wallet_nano_usd,
                    more_nano_usd=more_nano_usd,
                ),
                self._keys.top_up(
                    hold.key,
                    hold.id,
                    held_nano_usd=hold.key_nano_usd,
                    more_nano_usd=more_nano_usd,
                    tier=hold.tier,
                    quotas=hold.quotas,
                ),
                *(
                    self._keys.top_up(
                        level.owner(hold.workspace_id),
                        hold.id,
                        held_nano_usd=level.nano_usd,
                        more_nano_usd=more_nano_usd,
                    )
                    for level in topped
                ),
            )
        for refusal in refusals:
            if refusal is not None:
                raise refusal
        return replace(
            hold,
            wallet_nano_usd=hold.wallet_nano_usd + more_nano_usd,
            key_nano_usd=hold.key_nano_usd + more_nano_usd,
            quotas=topped_up(hold.quotas, more_nano_usd),
            levels=tuple(
                replace(level, nano_usd=level.nano_usd + more_nano_usd)
                if level in topped
                else level
                for level in hold.levels
            ),
        )

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Write the record unless one exists, settle all sides by the stored record, and return it.

        Once the record exists, an unreachable side is not an error, because the sweeper settles it.
        """
        if (record.id, record.workspace_id) != (hold.id, hold.workspace_id):
            raise ValueError(f"record {record.id} does not belong to hold {hold.id}")
        with refusing_when_unavailable():
            decided = await repeat_while_refused(
                partial(self._generations.put_if_absent, record),
                self._clock,
                jitter=self._ids.uniform,
                for_s=_DECIDES_FOR_S,
                is_idempotent=True,
            )
        await self._settle_sides(hold, use_of(decided))
        return decided

    async def settle_sum(self, hold: Hold, cost_nano_usd: int) -> None:
        """Replace a hold by the cost of several generations whose records exist.

        Every side must confirm, because the sweeper knows no record under the hold's id.
        """
        settling = (
            repeat_while_refused(side, self._clock, jitter=self._ids.uniform, is_idempotent=True)
            for side in self._settlements_of(hold, QuotaUse(cost_nano_usd=cost_nano_usd))
        )
        with refusing_when_unavailable():
            await asyncio.gather(*settling)

    async def _hold(self, request: HoldRequest, first_id: str | None) -> Hold:
        started_s = self._clock.monotonic_s()
        with refusing_when_unavailable():
            for attempt in range(_IDS_MAX):
                hold_id = first_id if first_id and attempt == 0 else self._ids.new_id()
                outcome = await self._hold_once(request, hold_id)
                if isinstance(outcome, Hold):
                    # A failed write indicates that the shard is busy, so the shard counts as
                    # crowded.
                    return replace(outcome, crowded=outcome.crowded or attempt > 0)
                if isinstance(outcome, GatewayError):
                    outcome.request_id = hold_id
                    raise outcome
                if self._clock.monotonic_s() - started_s > _HOLD_BUDGET_S:
                    break
            raise StoreUnavailable("no hold could be confirmed", maybe_applied=False)

    async def _hold_once(self, request: HoldRequest, hold_id: str) -> Hold | GatewayError | None:
        """Try to place a hold with one id; return the hold, a refusal, or None for an unknown
        outcome.
        """
        principal = request.principal
        requests = states_of(request)
        first_count = self._refused.get(principal.key_id, 0)
        states = await self._hold_states(requests[:first_count], hold_id) if first_count else []
        wallet = None
        if all(isinstance(state, KeyHold) for state in states):
            self._refused.pop(principal.key_id, None)
            holding = asyncio.gather(
                outcome_of(
                    self._wallets.hold(
                        principal.workspace_id,
                        principal.shards,
                        hold_id,
                        request.amount_nano_usd,
                        covered=request.covered,
                    )
                ),
                self._hold_states(requests[first_count:], hold_id),
            )
            if request.meanwhile is not None:
                # The callback runs after the first steps of the tasks for the sides, which send the
                # writes.
                asyncio.get_running_loop().call_soon(request.meanwhile)
            wallet, above = await holding
            states = [*states, *above]
        held = [state for state in states if isinstance(state, KeyHold)]
        if isinstance(wallet, WalletHold) and len(held) == len(requests):
            return whole_hold(request, hold_id, wallet, held)
        self._note_refusal(principal.key_id, states, len(requests))
        await self._release(request, hold_id, wallet, states)
        outcomes = (*states, wallet)
        for side in outcomes:
            if isinstance(side, CorruptItem):
                raise side
        refusal = next((side for side in outcomes if isinstance(side, GatewayError)), None)
        if refusal is not None and isinstance(states[0], KeyHold):
            # The key has counted this request although another side refuses it, so the key's rates
            # are reported as of after the request.
            key = states[0]
            refusal.rate_limit, refusal.token_limit = key.rate_limit, key.token_limit
        return refusal

    async def _hold_states(
        self, requests: Sequence[tuple[LimitOwner, KeyHoldRequest]], hold_id: str
    ) -> list[_StateOutcome]:
        holding = [
            outcome_of(self._hold_state(owner, hold_id, request)) for owner, request in requests
        ]
        # Most keys have no limited level above them, and a single state does not need a task.
        return [await holding[0]] if len(holding) == 1 else await asyncio.gather(*holding)

    def _hold_state(
        self, owner: LimitOwner, hold_id: str, request: KeyHoldRequest
    ) -> Awaitable[KeyHold | GatewayError]:
        keys = self._keys
        if request.session is not None:
            amount = request.amount_nano_usd
            return keys.hold_in_session(owner, hold_id, request.session, amount)
        return (keys.hold if request.slices == 1 else keys.hold_on_slices)(owner, hold_id, request)

    def _note_refusal(self, key_id: str, states: Sequence[_StateOutcome], count: int) -> None:
        """Remember which state refused a request, if there are states above it.

        The next hold tries the states up to that one first. Otherwise, the states above it would
        count refused requests, and a key that exceeds its own rate would use up its team's rate.
        The first refusal is still counted above, because a hold normally tries all states at once,
        in one round trip.
        """
        for position, state in enumerate(states, 1):
            if isinstance(state, GatewayError):
                if position < count:
                    self._refused[key_id] = position
                    if len(self._refused) > _REFUSED_MAX:
                        self._refused.popitem(last=False)
                return

    async def _release(
        self,
        request: HoldRequest,
        hold_id: str,
        wallet: WalletHold | GatewayError | HoldUnknown | StoreUnavailable | None,
        states: Sequence[_StateOutcome],
    ) -> None:
        """Release the sides that hold money, or may hold money, after the hold as a
        whole failed.
        """
        releases: list[Release] = []
        if isinstance(wallet, WalletHold | HoldUnknown):
            write = partial(
                self._wallets.settle,
                request.principal.workspace_id,
                wallet.shard,
                hold_id,
                held_nano_usd=wallet.amount_nano_usd,
                cost_nano_usd=0,
            )
            releases.append(Release(write=write, is_unsure=isinstance(wallet, HoldUnknown)))
        for (owner, _), state in zip(states_of(request), states, strict=False):
            if isinstance(state, KeyHold | HoldUnknown):
                slice_ = state.owner.slice if isinstance(state, KeyHold) else state.shard
                write = partial(
                    self._keys.settle,
                    replace(owner, slice=slice_) if slice_ else owner,
                    hold_id,
                    held_nano_usd=state.amount_nano_usd,
                    cost_nano_usd=0,
                    unused_tokens=state.tokens if isinstance(state, KeyHold) else 0,
                    unused_requests=state.requests if isinstance(state, KeyHold) else 0,
                    quotas=state.quotas.holds if isinstance(state, KeyHold) else (),
                    use=QuotaUse(requests=0),
                )
                releases.append(Release(write=write, is_unsure=isinstance(state, HoldUnknown)))
        await self._settlements.release(hold_id, releases)

    async def _settle_sides(self, hold: Hold, use: QuotaUse) -> None:
        settling = self._settlements_of(hold, use)
        await self._settlements.settle(hold.id, settling)

    def _settlements_of(self, hold: Hold, use: QuotaUse) -> list[SideWrite]:
        """Return the writes that settle a hold's sides; repeating them does no harm."""
        cost_nano_usd, tokens = use.cost_nano_usd, use.tokens
        return [
            partial(
                self._wallets.settle,
                hold.workspace_id,
                hold.shard,
                hold.id,
                held_nano_usd=hold.wallet_nano_usd,
                cost_nano_usd=cost_nano_usd,
                crowded=hold.crowded,
            ),
            partial(
                self._keys.settle,
                hold.key,
                hold.id,
                held_nano_usd=hold.key_nano_usd,
                cost_nano_usd=cost_nano_usd,
                unused_tokens=hold.key_tokens - tokens,
                quotas=hold.quotas,
                use=use,
            ),
            *(
                partial(
                    self._keys.settle,
                    level.owner(hold.workspace_id),
                    hold.id,
                    held_nano_usd=level.nano_usd,
                    cost_nano_usd=cost_nano_usd,
                    unused_tokens=level.tokens - tokens,
                )
                for level in hold.levels
            ),
        ]
