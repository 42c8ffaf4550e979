"""The stores in this process's memory, for unit tests and for trying things out.

Same decisions and same contract tests as the stores on DynamoDB; no I/O, so nothing is ever
unavailable and no write can be lost. One wallet shard a workspace.
"""

from collections.abc import Callable
from typing import assert_never

from msgspec import json
from msgspec.structs import replace

from tests.memory.books import MemoryBooks, MemoryKey, MemoryWallet
from tests.memory.budgets import MemoryBudgets
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.errors import ErrorCode, GatewayError, RequestError
from tollgate.core.ids import IdSource, created_s
from tollgate.core.limits import LimitOwner, SessionLimit, TierLimits
from tollgate.core.pages import Page
from tollgate.core.principal import Principal
from tollgate.core.records.activity import GenerationFilter
from tollgate.core.records.audit import Actor, AuditEntry, AuditFilter, AuditSeal, SealedDay
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.keys.key_holds import KeyHoldRequest, next_hold_step
from tollgate.stores.ports.access_log import Denial, ReadContent
from tollgate.stores.ports.base import Hold
from tollgate.stores.rules.access_entries import entry_of_read, entry_of_refusal
from tollgate.stores.rules.account import (
    WalletState,
    key_refused,
    microseconds,
    too_many_holds,
    top_up_refusal,
    wallet_step,
    workspace_locked,
)
from tollgate.stores.rules.admission import WaitingRequests, refuse_by_state, refuse_by_wallet
from tollgate.stores.rules.audit_chain import (
    StoredEntry,
    check_day,
    day_start_s,
    days_between,
)
from tollgate.stores.rules.audit_entries import first_entry_id, is_entry_id
from tollgate.stores.rules.credit_refusals import insufficient_credits
from tollgate.stores.rules.limit_warnings import find_warning
from tollgate.stores.rules.periods import bucket_names, minute_bucket
from tollgate.stores.rules.quotas import (
    QuotaRequest,
    QuotaUse,
    refuse_top_up,
    top_up_take,
    topped_up,
    use_of,
)


def _owner(workspace_id: str, key_id: str) -> LimitOwner:
    return LimitOwner(level="key", id=key_id, workspace_id=workspace_id)


class MemoryLedger(MemoryBudgets):
    """Implements `stores.ports.base.Ledger`."""

    def __init__(self, books: MemoryBooks, ids: IdSource, clock: Clock) -> None:
        super().__init__(books, clock)
        self._ids = ids

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
        """Set money aside on wallet, key and session, at once."""
        hold_id = first_id or self._ids.new_id()
        self._books.sessions_used.check(principal, session, amount_nano_usd)
        second, now_us = created_s(hold_id), microseconds(self._clock.now_s())
        key = self._books.keys.get(principal.key_id)
        wanted = KeyHoldRequest(
            amount_nano_usd=amount_nano_usd,
            tokens=tokens,
            covered=covered,
            tier=tier,
            quotas=QuotaRequest.of(
                principal, models, amount_nano_usd, tokens=tokens, covered=covered
            ),
        )
        stored = None if key is None else key.state_at(now_us / 1_000_000)
        owner = _owner(principal.workspace_id, principal.key_id)
        found = next_hold_step(stored, owner, hold_id, wanted, now_us=now_us)
        if isinstance(found, GatewayError):
            raise found
        if key is None or stored is None:
            raise key_refused()
        step, counted = found
        turn = stored.within(tier, second).rate.take(step.form, now_us)
        key.rate = replace(key.rate, full_us=turn.full_us, ready_us=turn.ready_us)
        key.used_s[principal.old_secret] = now_us // 1_000_000
        key.take(hold_id, step, counted.holds)
        rate_limit = turn.to_limit(now_us)
        held = key.state().within(tier, second)
        token_limit = held.token_limit(second, now_us / 1_000_000)
        try:
            wallet_amount = self._hold_wallet(principal, hold_id, amount_nano_usd, covered=covered)
        except GatewayError as refusal:
            refusal.rate_limit, refusal.token_limit = rate_limit, token_limit
            use = QuotaUse(requests=0)
            self._settle_key(key, hold_id, use=use, unused_tokens=step.tokens)
            raise
        return Hold(
            id=hold_id,
            workspace_id=principal.workspace_id,
            key_id=principal.key_id,
            shard=0,
            wallet_nano_usd=wallet_amount,
            key_nano_usd=step.amount_nano_usd,
            key_buckets=bucket_names(second),
            key_tokens=step.tokens,
            rate_limit=rate_limit,
            token_limit=token_limit,
            warning=find_warning(held, principal.warns_from_percent, second, wanted.quotas),
            covered=covered,
            tier=tier,
            levels=self._books.sessions_used.hold(principal, session, hold_id, amount_nano_usd),
            quotas=counted.holds,
            used_up=counted.used_up,
        )

    async def top_up(self, hold: Hold, more_nano_usd: int) -> Hold:
        """Set more aside on both sides of a hold, all of it or nothing."""
        wallet, key = self._books.wallets[hold.workspace_id], self._books.keys[hold.key_id]
        if wallet.locked:
            raise workspace_locked(hold.id)
        state = key.state().within(hold.tier, created_s(hold.id))
        now_us = microseconds(self._clock.now_s())
        owner = _owner(hold.workspace_id, hold.key_id)
        if refusal := top_up_refusal(state, owner, hold.id, more_nano_usd, now_us=now_us):
            raise refusal
        take = top_up_take(hold.quotas, more_nano_usd)
        if refusal := refuse_top_up(key.counters, take, owner, hold.id):
            raise refusal
        if wallet.available < more_nano_usd:
            raise insufficient_credits(wallet.available, more_nano_usd)
        wallet.available -= more_nano_usd
        wallet.holds[hold.id] += more_nano_usd
        key.holds[hold.id] += more_nano_usd
        key.add(-more_nano_usd, hold.key_buckets)
        key.uncount(hold.id, QuotaUse(requests=0))
        key.count(hold.id, topped_up(hold.quotas, more_nano_usd))
        return replace(
            hold,
            wallet_nano_usd=wallet.holds[hold.id],
            key_nano_usd=key.holds[hold.id],
            quotas=topped_up(hold.quotas, more_nano_usd),
        )

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Decide by putting the record if there is none, then give back what was not spent."""
        if (record.id, record.workspace_id) != (hold.id, hold.workspace_id):
            raise ValueError(f"record {record.id} does not belong to hold {hold.id}")
        standing = self._books.records.setdefault((record.workspace_id, record.id), record)
        self._settle_sides(hold, use_of(standing))
        return standing

    async def settle_sum(self, hold: Hold, cost_nano_usd: int) -> None:
        """Replace a hold by the cost of several generations."""
        self._settle_sides(hold, QuotaUse(cost_nano_usd=cost_nano_usd))

    def _settle_sides(self, hold: Hold, use: QuotaUse) -> None:
        cost = use.cost_nano_usd
        wallet = self._books.wallets[hold.workspace_id]
        if hold.id in wallet.holds:
            wallet.available += wallet.holds.pop(hold.id) - cost
            wallet.spent += cost
        unused_tokens = hold.key_tokens - use.tokens
        key = self._books.keys.get(hold.key_id)
        if key is not None:
            self._settle_key(key, hold.id, use=use, unused_tokens=unused_tokens)
        for level in hold.levels:
            self._books.sessions_used.settle(level, hold.id, cost)

    def _hold_wallet(
        self, principal: Principal, hold_id: str, amount: int, *, covered: bool
    ) -> int:
        wallet = self._books.wallets.get(principal.workspace_id, MemoryWallet())
        step = wallet_step(
            WalletState(
                available_nano_usd=wallet.available,
                locked=wallet.locked,
                holds=len(wallet.holds),
            ),
            amount,
            covered=covered,
        )
        match step:
            case "hold" | "hold_rest":
                taken = min(amount, wallet.available)
                wallet.available -= taken
                wallet.holds[hold_id] = taken
                return taken
            case "locked":
                raise workspace_locked(hold_id)
            case "full":
                raise too_many_holds()
            case "empty":
                raise insufficient_credits(wallet.available, amount)
            case _:
                assert_never(step)

    def _settle_key(
        self, key: MemoryKey, hold_id: str, *, use: QuotaUse, unused_tokens: int
    ) -> None:
        cost = use.cost_nano_usd
        if hold_id in key.holds:
            key.uncount(hold_id, use)
            key.add(key.holds.pop(hold_id) - cost, bucket_names(created_s(hold_id)))
            key.add_tokens(unused_tokens, minute_bucket(created_s(hold_id)))
            key.spent += cost


class MemoryAdmissions:
    """Implements `stores.ports.base.Admissions`."""

    def __init__(self, books: MemoryBooks, clock: Clock) -> None:
        self._books = books
        self._clock = clock
        self._waiting = WaitingRequests()

    async def admit(
        self, principal: Principal, request_id: str, *, tier: TierLimits | None = None
    ) -> None:
        """Admit a request once, by the key and the wallet."""
        if self._waiting.has(principal.key_id, request_id):
            return
        key = self._books.keys.get(principal.key_id)
        wallet = self._books.wallets.get(principal.workspace_id, MemoryWallet())
        shard = WalletState(
            available_nano_usd=wallet.available, locked=wallet.locked, holds=len(wallet.holds)
        )
        by_key = refuse_by_state(
            None if key is None else key.state_at(self._clock.now_s()),
            _owner(principal.workspace_id, principal.key_id),
            request_id,
            waiting=self._waiting.count(principal.key_id),
            now_us=microseconds(self._clock.now_s()),
            tier=tier,
        )
        for refusal in (by_key, refuse_by_wallet([shard], request_id)):
            if refusal is not None:
                raise refusal
        self._waiting.add(principal.key_id, request_id)

    def end(self, principal: Principal, request_id: str) -> None:
        """Stop counting a request."""
        self._waiting.discard(principal.key_id, request_id)


class MemoryAuditLog:
    """Implements `stores.ports.administration.AuditLog`."""

    def __init__(self, books: MemoryBooks, clock: Clock) -> None:
        self._books = books
        self._clock = clock

    async def check(self, workspace_id: str | None, first: str, last: str) -> list[SealedDay]:
        """Compare the days in [first, last] with their seals."""
        seals = self._books.seals.get(workspace_id, {})
        before: AuditSeal | None = None
        checked = []
        for day in days_between(first, last):
            low = first_entry_id(day_start_s(day) * 1_000)
            high = first_entry_id((day_start_s(day) + DAY_S) * 1_000)
            entries = [
                StoredEntry(it.id, json.encode(it).decode())
                for it in sorted(self._books.entries_of_audit, key=lambda it: it.id)
                if low <= it.id < high and workspace_id in (None, it.workspace_id)
            ]
            checked.append(
                check_day(day, seals.get(day), before, entries, now_s=self._clock.now_s())
            )
            before = seals.get(day, before)
        return checked

    async def page(
        self,
        workspace_id: str | None,
        wanted: AuditFilter,
        *,
        limit: int,
        before: str | None = None,
    ) -> Page[AuditEntry]:
        """Return a page of entries, latest first, with ids below `before`."""
        if before is not None and not is_entry_id(before):
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "The cursor is not valid.", param="cursor"
            )
        found = [
            entry
            for entry in sorted(self._books.entries_of_audit, key=lambda it: it.id, reverse=True)
            if workspace_id in (None, entry.workspace_id)
            and wanted.accepts(entry)
            and (before is None or entry.id < before)
        ]
        page = tuple(found[:limit])
        return Page(found=page, next=page[-1].id if len(found) > limit else None)


class MemoryAccessLog:
    """Implements `stores.ports.access_log.AccessLog`."""

    def __init__(self, books: MemoryBooks, clock: Clock) -> None:
        self._books = books
        self._clock = clock

    async def note_read(self, kind: ReadContent, target: str, *, by: Actor) -> None:
        """Add the entry of a read."""
        self._add(entry_of_read(kind, target, by, now_s=self._clock.now_s()))

    async def note_refusal(self, refusal: Denial, target: str, code: str, *, by: Actor) -> None:
        """Add the entry of a refusal."""
        self._add(entry_of_refusal(refusal, target, code, by, now_s=self._clock.now_s()))

    def _add(self, entry: AuditEntry) -> None:
        if all(it.id != entry.id for it in self._books.entries_of_audit):
            self._books.entries_of_audit.append(entry)


class MemoryGenerationStore:
    """Implements `stores.ports.administration.GenerationStore`."""

    def __init__(self, books: MemoryBooks) -> None:
        self._books = books

    async def get(self, workspace_id: str, generation_id: str) -> GenerationRecord | None:
        """Return a record of this workspace, None if there is none."""
        return self._books.records.get((workspace_id, generation_id))

    async def page(
        self,
        workspace_id: str,
        wanted: GenerationFilter,
        *,
        limit: int,
        before: str | None = None,
    ) -> Page[GenerationRecord]:
        """Return a page of this workspace's records, newest first, with ids below `before`."""
        records = [
            record
            for (owner, id_), record in sorted(self._books.records.items(), reverse=True)
            if owner == workspace_id
            and wanted.since_s <= created_s(id_) < wanted.until_s
            and (before is None or id_ < before)
            and wanted.accepts(record)
        ]
        page = tuple(records[:limit])
        return Page(found=page, next=page[-1].id if len(records) > limit else None)
