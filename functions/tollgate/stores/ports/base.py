"""Protocols of the stores that are needed to serve a generation.

Every method raises LedgerError(service_unavailable) if the store cannot be reached, because the
gateway refuses a request that it cannot check. Only cooldowns fail open.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Literal, Protocol

from msgspec import Struct

from tollgate.core.limits import (
    AboveKey,
    LimitOwner,
    LimitWarning,
    RateLimit,
    SessionLimit,
    TierLimits,
)
from tollgate.core.principal import Principal
from tollgate.core.quotas import Quota, QuotaHold
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.routing.endpoint_status import (
    AnswerTime,
    CooldownPolicy,
    KeyFault,
    KeyNote,
    Speed,
)
from tollgate.core.secret import CredentialPlace, SecretReference


class LevelHold(Struct, frozen=True, kw_only=True):
    """Money and tokens set aside for one generation in the state of a member, team or session."""

    level: AboveKey | Literal["session"]
    id: str
    nano_usd: int
    tokens: int = 0
    slice: int = 0
    """Number of the slice that the money was taken from."""

    def owner(self, workspace_id: str) -> LimitOwner:
        """Return the owner of the state that has the hold."""
        return LimitOwner(level=self.level, id=self.id, workspace_id=workspace_id, slice=self.slice)


class Hold(Struct, frozen=True, kw_only=True):
    """Money set aside for a generation in a wallet shard, and in the states of the key and its
    levels.
    """

    id: str
    """Id of the generation."""
    workspace_id: str
    key_id: str
    shard: int
    """Wallet shard from which the money was taken."""
    wallet_nano_usd: int
    """Nano-dollars held in the wallet shard, possibly less than requested."""
    key_nano_usd: int
    """Nano-dollars held in the key's state, possibly less than requested."""
    key_buckets: tuple[str, ...] = ()
    """Period buckets from which the key's amount was taken; the unspent part is
    returned to them.
    """
    key_tokens: int = 0
    """Tokens taken from the key's minute."""
    rate_limit: RateLimit | None = None
    """The key's request rate limit after this hold, for response headers."""
    token_limit: RateLimit | None = None
    """The key's token rate limit after this hold, for response headers."""
    warning: LimitWarning | None = None
    """The most used limit of the key, if a large part of it is used; for response headers."""
    covered: bool = False
    """True if the hold must always cover the cost, so that it is topped up when it is nearly used
    up.
    """
    tier: TierLimits | None = None
    """Limits of the key's tier, which also apply to top-ups."""
    levels: tuple[LevelHold, ...] = ()
    """Holds on the session and on the limited levels above the key, whose buckets have the same
    names.

    These holds are settled even if the key has moved to another team in the meantime.
    """
    quotas: tuple[QuotaHold, ...] = ()
    """The part of the hold that quotas of the key count."""
    used_up: tuple[Quota, ...] = ()
    """Quotas of the key that are used up, so their models may not be tried."""
    crowded: bool = False
    """True if the shard has too many holds; settle() then marks the shard so that
    shards are added.
    """

    @property
    def key(self) -> LimitOwner:
        """Owner of the key's state."""
        return LimitOwner(level="key", id=self.key_id, workspace_id=self.workspace_id)

    @property
    def slices(self) -> dict[AboveKey, int]:
        """Numbers of the slices that pay, by level, as in the record; slice 0 is left out."""
        return {
            level.level: level.slice
            for level in self.levels
            if level.slice and level.level != "session"
        }


class Ledger(Protocol):
    """The money of generations: holds and their settlement."""

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
        """Set money aside before anything is spent, and return the hold.

        If both the key and its `tier` have a limit, the stricter one applies; the limits of its
        member and team apply as well. `tokens` is the upper bound of the generation's tokens, which
        are taken from the key's minute. A `covered` hold takes the whole amount or is refused. Any
        other hold takes the remaining amount, and is refused only if nothing is left. A `session`
        takes the whole amount in any case, so its limit is not exceeded. The quotas of the key
        count the `models` that may answer; the hold names the quotas that are used up, and is
        refused if no model is left. The hold's id
        is `first_id`, unless a write under that id had an unknown outcome. `meanwhile` may be
        called during the writes, and must not raise.

        Raise LedgerError (insufficient_credits, service_unavailable) or AccessError
        (invalid_api_key, workspace_locked, key_limit_exceeded, rate_limit_exceeded).
        """

    def budget_left_percent(
        self, principal: Principal, *, tier: TierLimits | None = None
    ) -> int | None:
        """Return the smallest remaining share of the USD limits of the key, tier, member and team.

        The share is in percent, rounded down, and excludes held money. It is as of this process's
        last holds, because nothing is read. Return None if no limit is known.
        """

    async def top_up(self, hold: Hold, more_nano_usd: int) -> Hold:
        """Add the whole amount to a hold in the wallet, the key and its levels, or nothing.

        The same limits apply, except the session's, which holds the highest cost already.

        Raise LedgerError (insufficient_credits, key_limit_exceeded,
        service_unavailable) or AccessError. The caller may settle the passed hold even after an
        error.
        """

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Write the record unless it exists, and then release the unspent part of the hold.

        Return the stored record: `record`, or the one that an earlier call wrote. A retry is safe.
        """


class Admissions(Protocol):
    """Admits requests whose work before the hold is costly.

    A hold counts a request only after the costly work. Until then, an admitted request is counted
    here, so that requests sent at the same time cannot all pass a limit that admits only one of
    them.
    """

    async def admit(
        self, principal: Principal, request_id: str, *, tier: TierLimits | None = None
    ) -> None:
        """Admit a request once, without writing anything; admitting the same request again does
        nothing.

        Raises the refusal that even the smallest hold would get now. The admitted requests of this
        process that have no hold yet are counted as holds.
        """

    def end(self, principal: Principal, request_id: str) -> None:
        """Stop counting a request, because its hold counts it or the request has ended."""


class KeyDirectory(Protocol):
    """The keys that may call the gateway."""

    async def authenticate(self, secret: str) -> Principal:
        """Return the principal of a secret; raise AccessError(invalid_api_key) if the secret is
        refused.
        """

    async def find_key(self, workspace_id: str, key_id: str) -> Principal:
        """Return the principal of a key by its id; raise AccessError(invalid_api_key) if the key
        is refused.
        """

    async def note_use(self, principal: Principal) -> None:
        """Record the use of a key by a request without a hold, at most once a minute."""

    async def note_address(self, principal: Principal, address: str | None) -> None:
        """Record the caller's address, at most every ten minutes, if the key stores addresses."""


class CooldownStore(Protocol):
    """Cooldowns and speeds of endpoints, shared by all instances.

    Unlike other stores, this one is best effort: no method raises if the store cannot be reached.
    An endpoint whose failures are unknown counts as available, and one whose speed is unknown
    counts as not measured. Failures and speeds that cannot be written are lost.
    """

    async def find_resting(
        self, endpoint_ids: Collection[str], policy: CooldownPolicy
    ) -> Mapping[str, float]:
        """Return the endpoints in cooldown, each with the Unix second from which one request may
        probe it.
        """

    async def begin_probe(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        """Return True if the request may try an endpoint of `find_resting` first. After each
        cooldown, only one request may.
        """

    async def release_probe(self, endpoint_id: str) -> None:
        """Let another request probe the endpoint, because a probe has ended without a result."""

    async def count_failure(
        self, endpoint_id: str, policy: CooldownPolicy, fault: KeyFault | None = None
    ) -> bool:
        """Count a failure; return True if this failure starts a cooldown of the endpoint.

        The same write notes the `fault` of the provider's key, or removes an earlier one.
        """

    def awaits_answer(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        """Return True if this instance knows of a key's fault or a cooldown that an answer ends."""

    async def note_recovery(self, endpoint_id: str, policy: CooldownPolicy) -> None:
        """End the endpoint's cooldown and remove its key's fault, because it has answered."""

    async def find_key_notes(self, endpoint_ids: Collection[str]) -> Mapping[str, KeyNote]:
        """Return the endpoints whose last failure, within a day, was a fault of their key."""

    def add_answer(self, endpoint_id: str, times: AnswerTime) -> bool:
        """Add an answer's times to this instance's sums; return True if `write_speed` is due."""

    async def write_speed(self, endpoint_id: str) -> None:
        """Write this instance's sums of an endpoint, for all instances."""

    async def find_speeds(self, endpoint_ids: Collection[str]) -> Mapping[str, Speed]:
        """Return the speeds of the endpoints whose speed was measured."""


class SecretStore(Protocol):
    """Provider secrets, found by reference."""

    async def read(self, reference: SecretReference) -> str | None:
        """Return the secret, or None if it is not set."""

    def place(self, reference: SecretReference) -> CredentialPlace:
        """Return where this process would find the secret."""


class SealKeys(Protocol):
    """The keys that encrypt the compaction items of workspaces, which clients store."""

    async def get(self, workspace_id: str) -> bytes:
        """Return a workspace's key: 32 random bytes that never change."""


class AnswerCache(Protocol):
    """Complete answers of workspaces, by a hash of the request; an answer is deleted after two
    days.
    """

    async def get(self, workspace_id: str, name: str) -> bytes | None:
        """Return a workspace's answer; None if there is none."""

    async def put(self, workspace_id: str, name: str, answer: bytes) -> None:
        """Store an answer in place of an earlier one."""
