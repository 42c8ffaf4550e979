"""The ledger on DynamoDB: hold wallet and key at once, decide by the record, settle both.

A hold's id is sent once per write. After an unknown outcome both sides are released and another id
is tried, because the lost write may still land under the first one.
"""

import asyncio
import logging
from collections.abc import Awaitable
from typing import Final, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.clock import Clock
from tollgate.core.errors import GatewayError
from tollgate.core.generation import GenerationRecord
from tollgate.core.ids import IdSource, created_s
from tollgate.core.limits import TierLimits
from tollgate.core.principal import Principal
from tollgate.stores.aws.aws_json import ATTEMPTS_MAX
from tollgate.stores.aws.failures import CorruptItem, StoreUnavailable, refusing_when_unavailable
from tollgate.stores.aws.holds import HoldUnknown
from tollgate.stores.base import Hold
from tollgate.stores.keys.states import KeyHold, KeyHoldRequest, KeyStates
from tollgate.stores.money.wallets import WalletHold, Wallets
from tollgate.stores.records.generations import DynamoGenerationStore
from tollgate.stores.rules.periods import bucket_names

_log = logging.getLogger(__name__)

_IDS_MAX: Final = 3
# No further id is tried after this long: by then a 503 serves the caller better.
_HOLD_BUDGET_S: Final = 2.5

_Outcome = TypeVar("_Outcome")


class _HoldRequest(Struct, frozen=True, kw_only=True):
    principal: Principal
    amount_nano_usd: int
    tokens: int
    covered: bool
    tier: TierLimits | None


class DynamoLedger:
    """Implements `stores.base.Ledger`."""

    def __init__(
        self,
        wallets: Wallets,
        keys: KeyStates,
        generations: DynamoGenerationStore,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._wallets = wallets
        self._keys = keys
        self._generations = generations
        self._ids = ids
        self._clock = clock

    async def hold(
        self,
        principal: Principal,
        amount_nano_usd: int,
        first_id: str | None = None,
        *,
        tokens: int = 0,
        covered: bool = False,
        tier: TierLimits | None = None,
    ) -> Hold:
        """Set money aside on wallet and key, in one round trip where both have enough."""
        request = _HoldRequest(
            principal=principal,
            amount_nano_usd=amount_nano_usd,
            tokens=tokens,
            covered=covered,
            tier=tier,
        )
        holding = asyncio.ensure_future(self._hold(request, first_id))
        try:
            return await asyncio.shield(holding)
        except asyncio.CancelledError:
            # A caller that disconnects during the hold must not leave the hold behind.
            await asyncio.wait([holding])
            if holding.exception() is None:
                await self._settle_sides(holding.result(), cost_nano_usd=0, tokens=0)
            raise

    async def top_up(self, hold: Hold, more_nano_usd: int) -> Hold:
        """Set more aside on both sides of a hold, or refuse.

        Where only one side took it, settling finds the amount that is really held.
        """
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
                    hold.key_id,
                    hold.id,
                    held_nano_usd=hold.key_nano_usd,
                    more_nano_usd=more_nano_usd,
                    tier=hold.tier,
                ),
            )
        for refusal in refusals:
            if refusal is not None:
                raise refusal
        return replace(
            hold,
            wallet_nano_usd=hold.wallet_nano_usd + more_nano_usd,
            key_nano_usd=hold.key_nano_usd + more_nano_usd,
        )

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Decide by putting the record if there is none, then give back what was not spent.

        Once the record stands, a side that cannot be reached is no error: the sweeper settles it.
        """
        if (record.id, record.workspace_id) != (hold.id, hold.workspace_id):
            raise ValueError(f"record {record.id} does not belong to hold {hold.id}")
        with refusing_when_unavailable():
            standing = await self._generations.put_if_absent(record)
        await self._settle_sides(
            hold, cost_nano_usd=standing.cost_nano_usd, tokens=standing.usage.total_tokens
        )
        return standing

    async def _hold(self, request: _HoldRequest, first_id: str | None) -> Hold:
        started_s = self._clock.monotonic_s()
        with refusing_when_unavailable():
            for attempt in range(_IDS_MAX):
                hold_id = first_id if first_id and attempt == 0 else self._ids.new_id()
                outcome = await self._hold_once(request, hold_id)
                if isinstance(outcome, Hold):
                    # A shard that could not take it at once is busy, like one with many holds.
                    return replace(outcome, crowded=outcome.crowded or attempt > 0)
                if isinstance(outcome, GatewayError):
                    outcome.request_id = hold_id
                    raise outcome
                if self._clock.monotonic_s() - started_s > _HOLD_BUDGET_S:
                    break
            raise StoreUnavailable("no hold could be confirmed", maybe_applied=False)

    async def _hold_once(self, request: _HoldRequest, hold_id: str) -> Hold | GatewayError | None:
        """Try one id on both sides; return the hold, a refusal, or None for an unknown outcome."""
        principal = request.principal
        workspace_id, key_id = principal.workspace_id, principal.key_id
        wallet, key = await asyncio.gather(
            _outcome(
                self._wallets.hold(
                    workspace_id,
                    principal.shards,
                    hold_id,
                    request.amount_nano_usd,
                    covered=request.covered,
                )
            ),
            _outcome(
                self._keys.hold(
                    key_id,
                    hold_id,
                    KeyHoldRequest(
                        amount_nano_usd=request.amount_nano_usd,
                        tokens=request.tokens,
                        covered=request.covered,
                        old_secret=principal.old_secret,
                        tier=request.tier,
                    ),
                )
            ),
        )
        if isinstance(wallet, WalletHold) and isinstance(key, KeyHold):
            return Hold(
                id=hold_id,
                workspace_id=workspace_id,
                key_id=key_id,
                shard=wallet.shard,
                wallet_nano_usd=wallet.amount_nano_usd,
                key_nano_usd=key.amount_nano_usd,
                key_buckets=bucket_names(created_s(hold_id)),
                key_tokens=key.tokens,
                rate_limit=key.rate_limit,
                token_limit=key.token_limit,
                covered=request.covered,
                tier=request.tier,
                crowded=wallet.crowded,
            )
        await self._release(principal, hold_id, wallet, key)
        for side in (key, wallet):
            if isinstance(side, CorruptItem):
                raise side
        if isinstance(key, GatewayError):
            return key
        if not isinstance(wallet, GatewayError):
            return None
        if isinstance(key, KeyHold):
            # The key has counted a request that its workspace cannot pay for.
            wallet.rate_limit, wallet.token_limit = key.rate_limit, key.token_limit
        return wallet

    async def _release(
        self,
        principal: Principal,
        hold_id: str,
        wallet: WalletHold | GatewayError | HoldUnknown | StoreUnavailable,
        key: KeyHold | GatewayError | HoldUnknown | StoreUnavailable,
    ) -> None:
        """Give back what one side holds, or may hold, where the other side does not."""
        releases: list[Awaitable[None]] = []
        if isinstance(wallet, WalletHold | HoldUnknown):
            releases.append(
                self._wallets.settle(
                    principal.workspace_id,
                    wallet.shard,
                    hold_id,
                    held_nano_usd=wallet.amount_nano_usd,
                    cost_nano_usd=0,
                    attempts_max=_release_attempts(wallet),
                )
            )
        if isinstance(key, KeyHold | HoldUnknown):
            releases.append(
                self._keys.settle(
                    principal.key_id,
                    hold_id,
                    held_nano_usd=key.amount_nano_usd,
                    cost_nano_usd=0,
                    unused_tokens=key.tokens if isinstance(key, KeyHold) else 0,
                    attempts_max=_release_attempts(key),
                )
            )
        await _settle_all(hold_id, releases)

    async def _settle_sides(self, hold: Hold, *, cost_nano_usd: int, tokens: int) -> None:
        await _settle_all(
            hold.id,
            [
                self._wallets.settle(
                    hold.workspace_id,
                    hold.shard,
                    hold.id,
                    held_nano_usd=hold.wallet_nano_usd,
                    cost_nano_usd=cost_nano_usd,
                    crowded=hold.crowded,
                ),
                self._keys.settle(
                    hold.key_id,
                    hold.id,
                    held_nano_usd=hold.key_nano_usd,
                    cost_nano_usd=cost_nano_usd,
                    unused_tokens=hold.key_tokens - tokens,
                ),
            ],
        )


async def _outcome(holding: Awaitable[_Outcome]) -> _Outcome | HoldUnknown | StoreUnavailable:
    """Return a side's result or failure as a value, because a failure must not cancel the other
    side."""
    try:
        return await holding
    except (HoldUnknown, StoreUnavailable) as failed:
        return failed


async def _settle_all(hold_id: str, settling: list[Awaitable[None]]) -> None:
    """Settle in parallel; what cannot be reached is logged and left to the sweeper."""
    for outcome in await asyncio.gather(*map(_outcome, settling)):
        if outcome is not None:
            _log.warning("hold %s is left to the sweeper: %s", hold_id, outcome)


def _release_attempts(side: WalletHold | KeyHold | HoldUnknown) -> int:
    """Return 1 after a lost reply, because the caller is waiting; else the usual number."""
    return 1 if isinstance(side, HoldUnknown) else ATTEMPTS_MAX
