"""Protocols of the stores that serving a generation needs.

Every method raises LedgerError(service_unavailable) if the store cannot be reached: the gateway
refuses what it cannot check. Only cooldowns fail open.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Protocol

from msgspec import Struct

from tollgate.core.limits import AboveKey, LimitOwner, RateLimit, TierLimits
from tollgate.core.principal import Principal
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.routing.endpoint_status import AnswerTime, CooldownPolicy, Speed
from tollgate.core.secret import CredentialPlace, SecretReference


class LevelHold(Struct, frozen=True, kw_only=True):
    """Money and tokens set aside for one generation in the state of a member or a team."""

    level: AboveKey
    id: str
    nano_usd: int
    tokens: int = 0
    slice: int = 0
    """Slice of the level's state that the money was taken from."""

    def owner(self, workspace_id: str) -> LimitOwner:
        """Return the owner of the state that has the hold."""
        return LimitOwner(level=self.level, id=self.id, workspace_id=workspace_id, slice=self.slice)


class Hold(Struct, frozen=True, kw_only=True):
    """Money set aside for one generation: in a wallet shard, in the key's state and above it."""

    id: str
    """Id of the generation."""
    workspace_id: str
    key_id: str
    shard: int
    """Wallet shard that the money was taken from."""
    wallet_nano_usd: int
    """Nano-dollars held in the wallet shard, less than the bound if the shard had less."""
    key_nano_usd: int
    """Nano-dollars held in the key's state, less than the bound if a limit had less left."""
    key_buckets: tuple[str, ...] = ()
    """Period buckets that the key's amount was taken from, and is returned to even after midnight.
    """
    key_tokens: int = 0
    """Tokens taken from the key's minute."""
    rate_limit: RateLimit | None = None
    """The key's rate of requests after this hold, for the headers of the reply."""
    token_limit: RateLimit | None = None
    """The key's rate of tokens after this hold, for the headers of the reply."""
    covered: bool = False
    """True if the hold always covers the cost: it is topped up when it is nearly used up."""
    tier: TierLimits | None = None
    """Limits of the key's tier, which top-ups obey as well."""
    levels: tuple[LevelHold, ...] = ()
    """Limited levels above the key that money was taken from, in buckets of the same names.

    They are settled as they were held, even if the key has moved to another team in the meantime.
    """
    crowded: bool = False
    """True if the shard has too many holds; settle() marks it so that shards are added."""

    @property
    def key(self) -> LimitOwner:
        """Owner of the key's state."""
        return LimitOwner(level="key", id=self.key_id, workspace_id=self.workspace_id)

    @property
    def slices(self) -> dict[AboveKey, int]:
        """Slices that pay, by level, as the record names them."""
        return {level.level: level.slice for level in self.levels if level.slice}


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
        meanwhile: Callable[[], None] | None = None,
    ) -> Hold:
        """Set money aside before anything is spent.

        The narrower ones of the key's own limits and its `tier`'s limits apply, and the limits of
        its member and team as well. `tokens` is the upper bound of the generation's tokens, which
        are set aside from the key's minute. A `covered` hold takes the whole amount or is refused;
        any other hold takes what is left, and is refused only if nothing is left. The hold's id is
        `first_id`, unless a write under that id had an unknown outcome. `meanwhile` may be called
        while the writes are under way, and must not raise.

        Raise LedgerError (insufficient_credits, service_unavailable) or AccessError
        (invalid_api_key, workspace_locked, key_limit_exceeded, rate_limit_exceeded).
        """

    async def top_up(self, hold: Hold, more_nano_usd: int) -> Hold:
        """Set more aside on all sides of a hold, all of it or nothing, within the same limits.

        Raise LedgerError (insufficient_credits, key_limit_exceeded, service_unavailable) or
        AccessError. The caller may settle the hold that was passed in whether this call raises or
        not.
        """

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Write the record if there is none, which is the decision; then give back what was not
        spent.

        Return the stored record: this one, or that of an earlier decision. A retry is safe.
        """


class KeyDirectory(Protocol):
    """The keys that may call the gateway."""

    async def authenticate(self, secret: str) -> Principal:
        """Return the principal of a secret; raise AccessError(invalid_api_key) if refused."""

    async def note_use(self, principal: Principal) -> None:
        """Record the use of a key by a request without a hold, to the minute."""


class CooldownStore(Protocol):
    """Cooldowns and speeds of endpoints, shared by all instances.

    Unlike other stores this one is best effort: no method raises if the store cannot be reached. An
    endpoint with unknown failures counts as available, one with an unknown speed as not measured,
    and what cannot be written is not counted.
    """

    async def find_resting(
        self, endpoint_ids: Collection[str], policy: CooldownPolicy
    ) -> Mapping[str, float]:
        """Return the resting endpoints, each with the Unix second until which it rests."""

    async def count_failure(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        """Count a failure; return True if this failure makes the endpoint rest."""

    def add_answer(self, endpoint_id: str, times: AnswerTime) -> bool:
        """Add the times of an answer to this instance's sums; return True if they are due to be
        written.
        """

    async def write_speed(self, endpoint_id: str) -> None:
        """Write this instance's sums of an endpoint, for all instances."""

    async def find_speeds(self, endpoint_ids: Collection[str]) -> Mapping[str, Speed]:
        """Return the speeds of those endpoints that were measured."""


class SecretStore(Protocol):
    """Provider secrets, found by reference."""

    async def read(self, reference: SecretReference) -> str | None:
        """Return the secret, or None if it is not set."""

    def place(self, reference: SecretReference) -> CredentialPlace:
        """Return where this process would find the secret."""
