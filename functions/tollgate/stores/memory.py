"""The stores in this process's memory, for unit tests and for trying things out.

Same decisions and same contract tests as the stores on DynamoDB; no I/O, so nothing is ever
unavailable and no write can be lost. One wallet shard a workspace.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import assert_never

from tollgate.core.activity import GenerationFilter, GenerationPage
from tollgate.core.clock import Clock
from tollgate.core.errors import GatewayError
from tollgate.core.generation import GenerationRecord
from tollgate.core.ids import IdSource, created_s
from tollgate.core.principal import Principal
from tollgate.ledger.account import (
    HOLDS_MAX,
    NEVER_S,
    UNLIMITED_NANO_USD,
    KeyState,
    RateState,
    WalletState,
    insufficient_credits,
    key_refused,
    key_step,
    microseconds,
    too_many_holds,
    wallet_step,
    workspace_locked,
)
from tollgate.ledger.periods import PERIODS, bucket_names
from tollgate.stores.base import (
    Balance,
    CooldownPolicy,
    CreatedKey,
    Hold,
    KeySummary,
    NewKey,
    RateLimit,
)
from tollgate.stores.cooldowns import Failures, resting_of
from tollgate.stores.key_secret import LAST_LENGTH, is_well_formed, new_secret, secret_hash


@dataclass(slots=True)
class _Wallet:
    granted: int = 0
    available: int = 0
    spent: int = 0
    locked: bool = False
    holds: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Key:
    id: str
    new: NewKey
    last_four: str
    created_s: int
    rate: RateState
    enabled: bool = True
    spent: int = 0
    holds: dict[str, int] = field(default_factory=dict)
    buckets: dict[str, int] = field(default_factory=dict)

    def state(self) -> KeyState:
        return KeyState(
            enabled=self.enabled,
            expires_s=NEVER_S if self.new.expires_s is None else self.new.expires_s,
            concurrency=HOLDS_MAX if self.new.concurrency is None else self.new.concurrency,
            holds=len(self.holds),
            limits_nano_usd={
                period: self.new.limits_nano_usd.get(period, UNLIMITED_NANO_USD)
                for period in PERIODS
            },
            buckets=self.buckets,
            rate=self.rate,
        )

    def add(self, amount: int, buckets: Sequence[str]) -> None:
        """Give an amount back to period buckets, or take it where it is negative."""
        limits = self.state().limits_nano_usd
        for period, name in zip(PERIODS, buckets, strict=True):
            self.buckets[name] = self.buckets.get(name, limits[period]) + amount


@dataclass(slots=True)
class MemoryBooks:
    """What the stores below share: hand the same books to all of them."""

    wallets: dict[str, _Wallet] = field(default_factory=dict)
    grants: set[tuple[str, str]] = field(default_factory=set)
    keys: dict[str, _Key] = field(default_factory=dict)
    key_ids: dict[str, str] = field(default_factory=dict)
    records: dict[tuple[str, str], GenerationRecord] = field(default_factory=dict)

    def lock(self, workspace_id: str) -> None:
        """Let a workspace spend nothing any more."""
        self.wallets.setdefault(workspace_id, _Wallet()).locked = True


class MemoryLedger:
    """Implements `stores.base.Ledger`."""

    def __init__(self, books: MemoryBooks, ids: IdSource, clock: Clock) -> None:
        self._books = books
        self._ids = ids
        self._clock = clock

    async def hold(
        self, principal: Principal, amount_nano_usd: int, first_id: str | None = None
    ) -> Hold:
        """Set money aside on wallet and key."""
        hold_id = first_id or self._ids.new_id()
        buckets = bucket_names(created_s(hold_id))
        key_amount, rate_limit = self._hold_key(principal, hold_id, amount_nano_usd)
        try:
            wallet_amount = self._hold_wallet(principal, hold_id, amount_nano_usd)
        except GatewayError:
            self._settle_key(principal.key_id, hold_id, buckets, cost=0)
            raise
        return Hold(
            id=hold_id,
            workspace_id=principal.workspace_id,
            key_id=principal.key_id,
            shard=0,
            wallet_nano_usd=wallet_amount,
            key_nano_usd=key_amount,
            key_buckets=buckets,
            rate_limit=rate_limit,
        )

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Decide by putting the record if there is none, then give back what was not spent."""
        if (record.id, record.workspace_id) != (hold.id, hold.workspace_id):
            raise ValueError(f"record {record.id} does not belong to hold {hold.id}")
        standing = self._books.records.setdefault((record.workspace_id, record.id), record)
        cost = standing.cost_nano_usd
        wallet = self._books.wallets[hold.workspace_id]
        if hold.id in wallet.holds:
            wallet.available += wallet.holds.pop(hold.id) - cost
            wallet.spent += cost
        self._settle_key(hold.key_id, hold.id, hold.key_buckets, cost=cost)
        return standing

    def _hold_key(self, principal: Principal, hold_id: str, amount: int) -> tuple[int, RateLimit]:
        key = self._books.keys.get(principal.key_id)
        now_us = microseconds(self._clock.now_s())
        step = key_step(None if key is None else key.state(), hold_id, amount, now_us)
        if isinstance(step, GatewayError):
            raise step
        if key is None:
            raise key_refused()
        key.rate = key.rate.taken(step.form, now_us)
        key.holds[hold_id] = step.amount_nano_usd
        key.add(-step.amount_nano_usd, bucket_names(created_s(hold_id)))
        return step.amount_nano_usd, key.rate.shown(now_us)

    def _hold_wallet(self, principal: Principal, hold_id: str, amount: int) -> int:
        wallet = self._books.wallets.get(principal.workspace_id, _Wallet())
        step = wallet_step(
            WalletState(
                available_nano_usd=wallet.available,
                locked=wallet.locked,
                holds=len(wallet.holds),
            ),
            amount,
        )
        match step:
            case "hold" | "hold_rest":
                taken = min(amount, wallet.available)
                wallet.available -= taken
                wallet.holds[hold_id] = taken
                return taken
            case "locked":
                raise workspace_locked()
            case "full":
                raise too_many_holds()
            case "empty":
                raise insufficient_credits(wallet.available, amount)
            case _:
                assert_never(step)

    def _settle_key(self, key_id: str, hold_id: str, buckets: Sequence[str], *, cost: int) -> None:
        key = self._books.keys[key_id]
        if hold_id in key.holds:
            key.add(key.holds.pop(hold_id) - cost, buckets)
            key.spent += cost


class MemoryKeyStore:
    """Implements `stores.base.KeyStore`."""

    def __init__(self, books: MemoryBooks, ids: IdSource, clock: Clock, prefix: str) -> None:
        self._books = books
        self._ids = ids
        self._clock = clock
        self._prefix = prefix

    async def authenticate(self, secret: str) -> Principal:
        """Who holds this secret."""
        if not is_well_formed(secret, self._prefix):
            raise key_refused()
        key_id = self._books.key_ids.get(secret_hash(secret))
        if key_id is None:
            raise key_refused()
        key = self._books.keys[key_id]
        expires_s = key.new.expires_s
        if not key.enabled or (expires_s is not None and expires_s <= self._clock.now_s()):
            raise key_refused()
        return Principal(
            key_id=key_id,
            workspace_id=key.new.workspace_id,
            role=key.new.role,
            label=key.new.label,
            tier=key.new.tier,
            models=key.new.models,
        )

    async def create(self, new: NewKey) -> CreatedKey:
        """Make a key."""
        secret = new_secret(self._prefix, self._ids.random_bytes)
        key = _Key(
            id=self._ids.new_id(),
            new=new,
            last_four=secret[-LAST_LENGTH:],
            created_s=int(self._clock.now_s()),
            rate=RateState.fresh(new.requests_per_minute, new.burst),
        )
        self._books.keys[key.id] = key
        self._books.key_ids[secret_hash(secret)] = key.id
        return CreatedKey(secret=secret, summary=self._summary(key))

    async def get(self, workspace_id: str, key_id: str) -> KeySummary | None:
        """One key with what it has spent and what is left."""
        key = self._books.keys.get(key_id)
        return self._summary(key) if key and key.new.workspace_id == workspace_id else None

    async def list(self, workspace_id: str) -> Sequence[KeySummary]:
        """All keys of a workspace, oldest first."""
        return [
            self._summary(key)
            for _, key in sorted(self._books.keys.items())
            if key.new.workspace_id == workspace_id
        ]

    async def disable(self, workspace_id: str, key_id: str) -> KeySummary | None:
        """Stop a key."""
        key = self._books.keys.get(key_id)
        if key is None or key.new.workspace_id != workspace_id:
            return None
        key.enabled = False
        return self._summary(key)

    def _summary(self, key: _Key) -> KeySummary:
        remaining = key.state().remaining_nano_usd(int(self._clock.now_s()))
        return KeySummary(
            id=key.id,
            workspace_id=key.new.workspace_id,
            label=key.new.label,
            role=key.new.role,
            prefix=self._prefix,
            last_four=key.last_four,
            created_s=key.created_s,
            disabled=not key.enabled,
            tier=key.new.tier,
            models=key.new.models,
            limits_nano_usd=dict(key.new.limits_nano_usd),
            remaining_nano_usd={period: remaining[period] for period in key.new.limits_nano_usd},
            spent_nano_usd=key.spent,
            held_nano_usd=sum(key.holds.values()),
            requests_per_minute=key.rate.requests_per_minute,
            expires_s=key.new.expires_s,
        )


class MemoryCreditStore:
    """Implements `stores.base.CreditStore`."""

    def __init__(self, books: MemoryBooks) -> None:
        self._books = books

    async def grant(
        self, workspace_id: str, grant_id: str, amount_nano_usd: int, source: str
    ) -> bool:
        """Add credit once for a grant id; False if that id was granted before."""
        if amount_nano_usd <= 0:
            raise ValueError("a grant must be positive")
        if (workspace_id, grant_id) in self._books.grants:
            return False
        self._books.grants.add((workspace_id, grant_id))
        wallet = self._books.wallets.setdefault(workspace_id, _Wallet())
        wallet.granted += amount_nano_usd
        wallet.available += amount_nano_usd
        return True

    async def balance(self, workspace_id: str) -> Balance:
        """The workspace's money."""
        wallet = self._books.wallets.get(workspace_id, _Wallet())
        return Balance(
            granted_nano_usd=wallet.granted,
            available_nano_usd=wallet.available,
            held_nano_usd=sum(wallet.holds.values()),
            spent_nano_usd=wallet.spent,
        )


class MemoryGenerationStore:
    """Implements `stores.base.GenerationStore`."""

    def __init__(self, books: MemoryBooks) -> None:
        self._books = books

    async def get(self, workspace_id: str, generation_id: str) -> GenerationRecord | None:
        """A record of this workspace."""
        return self._books.records.get((workspace_id, generation_id))

    async def page(
        self,
        workspace_id: str,
        wanted: GenerationFilter,
        *,
        limit: int,
        before: str | None = None,
    ) -> GenerationPage:
        """Records of this workspace, newest first, made before the id `before`."""
        found = [
            record
            for (owner, id_), record in sorted(self._books.records.items(), reverse=True)
            if owner == workspace_id
            and wanted.since_s <= created_s(id_) < wanted.until_s
            and (before is None or id_ < before)
            and wanted.accepts(record)
        ]
        more = len(found) > limit
        page = tuple(found[:limit])
        return GenerationPage(records=page, before=page[-1].id if more else None)


class MemoryCooldownStore:
    """Implements `stores.base.CooldownStore`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures: dict[str, Failures] = {}

    async def resting(
        self, endpoint_ids: Collection[str], policy: CooldownPolicy
    ) -> Mapping[str, float]:
        """Those that rest now."""
        failures = {each: self._failures.get(each) for each in endpoint_ids}
        return resting_of(failures, policy, now_s=self._clock.now_s())

    async def failed(self, endpoint_id: str, policy: CooldownPolicy) -> None:
        """Count a failure."""
        now_s = self._clock.now_s()
        before = self._failures.get(endpoint_id, Failures(0, 0, 0))
        self._failures[endpoint_id] = before.counted(now_s, policy)
