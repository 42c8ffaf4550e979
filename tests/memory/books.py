"""The books that all stores in memory share."""

from collections.abc import Sequence

from msgspec import Struct, field
from msgspec.structs import replace

from tests.memory.session_states import MemorySessions
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import created_s
from tollgate.core.limits import Period
from tollgate.core.principal import KeyRole
from tollgate.core.quotas import QuotaHold
from tollgate.core.records.audit import AuditEntry, AuditSeal
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.records.subjects import Erasure, LegalHold, PrivacySubject
from tollgate.core.webhooks import EventDelivery, Webhook
from tollgate.stores.ports.administration import WorkspaceSettings
from tollgate.stores.ports.credit import CreditEntry
from tollgate.stores.ports.people import Member, Session, Team
from tollgate.stores.rules.account import (
    HOLDS_MAX,
    NEVER_S,
    UNLIMITED,
    KeyHoldAttempt,
    KeyState,
    RateState,
)
from tollgate.stores.rules.credit_lots import Lots
from tollgate.stores.rules.key_names import KeyName
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.stores.rules.periods import PERIODS, bucket_names, minute_bucket
from tollgate.stores.rules.quotas import QuotaUse
from tollgate.stores.rules.sweep import without_waiting


class MemoryWallet(Struct):
    """The money of a workspace."""

    granted: int = 0
    available: int = 0
    spent: int = 0
    locked: bool = False
    holds: dict[str, int] = field(default_factory=dict)


class MemoryKey(Struct):
    """A key with its secrets; `secrets` are the hashes, the one from before a rotation first."""

    id: str
    workspace_id: str
    role: KeyRole
    settings: KeySettings
    last_four: str
    created_s: int
    secret_created_s: int
    rate: RateState
    spent: int = 0
    holds: dict[str, int] = field(default_factory=dict)
    buckets: dict[str, int] = field(default_factory=dict)
    counters: dict[str, int] = field(default_factory=dict)
    # By hold, what it has added to counters.
    taken: dict[str, dict[str, int]] = field(default_factory=dict)
    digest: str = ""
    old: tuple[str, str, int, int] | None = None
    used_s: dict[bool, int] = field(default_factory=dict)
    address: tuple[str, int] | None = None

    def state_at(self, now_s: float) -> KeyState:
        """Return the state that admission decides by at a time."""
        return without_waiting(self.state(), self.holds, now_s)

    def state(self) -> KeyState:
        """Return the state with all holds."""
        settings = self.settings
        tokens = settings.tokens_per_minute
        return KeyState(
            enabled=not settings.disabled,
            expires_s=NEVER_S if settings.expires_s is None else settings.expires_s,
            concurrency=HOLDS_MAX if settings.concurrency is None else settings.concurrency,
            holds=len(self.holds),
            limits_nano_usd={
                period: settings.limits_nano_usd.get(period, UNLIMITED) for period in PERIODS
            },
            buckets=self.buckets,
            rate=self.rate,
            tokens_per_minute=UNLIMITED if tokens is None else tokens,
            counters=self.counters,
        )

    def take(self, hold_id: str, step: KeyHoldAttempt, holds: Sequence[QuotaHold]) -> None:
        """Place a hold on the key and on its quotas."""
        self.holds[hold_id] = step.amount_nano_usd
        self.count(hold_id, holds)
        self.add(-step.amount_nano_usd, bucket_names(created_s(hold_id)))
        self.add_tokens(-step.tokens, minute_bucket(created_s(hold_id)))

    def count(self, hold_id: str, holds: Sequence[QuotaHold]) -> None:
        """Add a hold to the counters of quotas."""
        self.taken[hold_id] = {each.name: each.taken for each in holds}
        for each in holds:
            self.counters[each.name] = self.counters.get(each.name, 0) + each.taken

    def uncount(self, hold_id: str, use: QuotaUse) -> None:
        """Replace what a hold has added to counters by what was used."""
        for name, amount in self.taken.pop(hold_id, {}).items():
            self.counters[name] -= use.unused(name, amount)

    def add(self, amount: int, buckets: Sequence[str]) -> None:
        """Give an amount back to period buckets, or take it where it is negative."""
        limits = self.state().limits_nano_usd
        for period, name in zip(PERIODS, buckets, strict=True):
            self.buckets[name] = self.buckets.get(name, limits[period]) + amount

    def add_tokens(self, tokens: int, bucket: str) -> None:
        """Give tokens back to their minute, or take them where they are negative."""
        limit = self.state().tokens_per_minute
        self.buckets[bucket] = self.buckets.get(bucket, limit) + tokens

    def change(self, settings: KeySettings) -> None:
        """Take over new settings; what was used of a limit stays used."""
        old, self.settings = self.settings, settings
        before, after = replace(self, settings=old).state(), self.state()
        shift = {
            period: after.limits_nano_usd[period] - before.limits_nano_usd[period]
            for period in PERIODS
        }
        for name in self.buckets:
            self.buckets[name] += (
                after.tokens_per_minute - before.tokens_per_minute
                if name.startswith("t_")
                else shift[_period_of(name)]
            )
        rates = {(it.requests_per_minute, it.burst) for it in (old, settings)}
        if len(rates) > 1:
            self.rate = RateState.fresh(settings.requests_per_minute, settings.burst)


class MemorySession(Struct):
    """A session of a member, which spends by the member's session key."""

    key_id: str
    expires_s: int
    id: str


class MemoryBooks(Struct):
    """Everything that is kept."""

    wallets: dict[str, MemoryWallet] = field(default_factory=dict)
    entries: dict[str, dict[str, CreditEntry]] = field(default_factory=dict)
    keys: dict[str, MemoryKey] = field(default_factory=dict)
    sessions_used: MemorySessions = field(default_factory=MemorySessions)
    deleted_names: list[tuple[str, KeyName]] = field(default_factory=list)
    entries_of_audit: list[AuditEntry] = field(default_factory=list)
    # By workspace, and by None for the whole log.
    seals: dict[str | None, dict[str, AuditSeal]] = field(default_factory=dict)
    records: dict[tuple[str, str], GenerationRecord] = field(default_factory=dict)
    lots: dict[str, Lots] = field(default_factory=dict)
    credit_limits: dict[str, int] = field(default_factory=dict)
    workspace_settings: dict[str, WorkspaceSettings] = field(default_factory=dict)
    webhooks: dict[tuple[str, str], Webhook] = field(default_factory=dict)
    deliveries: dict[str, EventDelivery] = field(default_factory=dict)
    teams: dict[tuple[str, str], Team] = field(default_factory=dict)
    members: dict[tuple[str, str], Member] = field(default_factory=dict)
    sign_ins: dict[tuple[str, str, str], Session] = field(default_factory=dict)
    legal_holds: dict[PrivacySubject, LegalHold] = field(default_factory=dict)
    erasures: dict[PrivacySubject, Erasure] = field(default_factory=dict)
    # By their secrets.
    sessions: dict[str, MemorySession] = field(default_factory=dict)
    # The opener and the expiry of each playground secret.
    playgrounds: dict[str, tuple[str, int]] = field(default_factory=dict)

    def lock(self, workspace_id: str) -> None:
        """Let a workspace spend nothing any more."""
        self.wallets.setdefault(workspace_id, MemoryWallet()).locked = True

    def check_belonging(
        self, workspace_id: str, *, team_id: str | None = None, member_id: str | None = None
    ) -> None:
        """Raise RequestError for a team or a member that is not there."""
        team = self.teams.get((workspace_id, team_id or ""))
        if team_id is not None and (team is None or team.deleted_s is not None):
            raise _missing("team", team_id)
        member = self.members.get((workspace_id, member_id or ""))
        if member_id is not None and (member is None or member.removed_s is not None):
            raise _missing("member", member_id)


def _missing(level: str, id_: str) -> RequestError:
    return RequestError(
        ErrorCode.INVALID_REQUEST,
        f"There is no {level} {id_} in this workspace.",
        param=f"{level}_id",
    )


def _period_of(bucket: str) -> Period:
    """The period of a bucket, by the form of its name."""
    name = bucket.removeprefix("b_")
    if name == "total":
        return "total"
    if "W" in name:
        return "week"
    return "day" if len(name) == len("20261121") else "month"
