"""Protocols of the stores that serving a generation needs.

Every method raises LedgerError(service_unavailable) when the store cannot be reached: the gateway
refuses what it cannot check. Only cooldowns fail open.
"""

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Protocol

from msgspec import Struct

from tollgate.core.cooldown import CooldownPolicy
from tollgate.core.generation import GenerationRecord
from tollgate.core.limits import AboveKey, LimitOwner, RateLimit, TierLimits
from tollgate.core.principal import Principal
from tollgate.core.secret import CredentialPlace, SecretReference

if TYPE_CHECKING:
    from tollgate.core.speed import AnswerTime, Speed


class LevelHold(Struct, frozen=True, kw_only=True):
    """Money and tokens set aside for one generation in the state of a member or a team."""

    level: AboveKey
    id: str
    nano_usd: int
    tokens: int = 0
    slice: int = 0
    """The slice of the level's state that the money comes from."""

    def owner(self, workspace_id: str) -> LimitOwner:
        """Return whose state holds it."""
        return LimitOwner(level=self.level, id=self.id, workspace_id=workspace_id, slice=self.slice)


class Hold(Struct, frozen=True, kw_only=True):
    """Money set aside for one generation: in a wallet shard, in the key's state and above it."""

    # The generation's id.
    id: str
    workspace_id: str
    key_id: str
    shard: int
    """The wallet shard that the money comes from."""
    # Nano-dollars held on either side; they differ when a side had less than the bound.
    wallet_nano_usd: int
    key_nano_usd: int
    key_buckets: tuple[str, ...] = ()
    """Period buckets that the key's amount comes from, and goes back to even after midnight."""
    key_tokens: int = 0
    """Tokens taken from the key's minute."""
    # The key's rates after this hold, for the headers of the reply.
    rate_limit: RateLimit | None = None
    token_limit: RateLimit | None = None
    # Whether the hold is topped up when it is nearly used up, within the limits of `tier`.
    covered: bool = False
    tier: TierLimits | None = None
    levels: tuple[LevelHold, ...] = ()
    """The limited levels above the key, from whose buckets of the same names money was taken. They
    are settled as they were held, even if the key has moved to another team meanwhile.
    """
    crowded: bool = False
    """Too many holds on the shard; settle() marks it so that shards are added."""

    @property
    def key(self) -> LimitOwner:
        """The owner of the state that counts the key."""
        return LimitOwner(level="key", id=self.key_id, workspace_id=self.workspace_id)

    @property
    def slices(self) -> dict[AboveKey, int]:
        """The slices that pay, as the record names them."""
        return {level.level: level.slice for level in self.levels if level.slice}


class Ledger(Protocol):
    """Holds: the money side of a generation."""

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

        Of the key's own limits and those of its `tier`, the narrower ones count; those of its
        member and team count beside them. `tokens` is the
        upper bound of the generation's tokens, set aside from the key's minute. A `covered` hold
        takes the whole amount or is refused; any other takes what is left, and is refused only at
        nothing. The hold's id is `first_id`, unless the outcome of a write with it stayed unknown.
        `meanwhile` may be called while its writes are under way, and must not raise.

        Raises LedgerError (insufficient_credits, service_unavailable) or AccessError
        (invalid_api_key, workspace_locked, key_limit_exceeded, rate_limit_exceeded).
        """

    async def top_up(self, hold: Hold, more_nano_usd: int) -> Hold:
        """Set more aside on all sides of a hold, all of it or nothing, within the same limits.

        Raises LedgerError (insufficient_credits, key_limit_exceeded, service_unavailable) or
        AccessError. The caller may settle the hold it passed in whether this raises or not.
        """

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Decide by putting the record if there is none, then give back what was not spent.

        Returns the record that stands: this one, or the one of an earlier decision. May be repeated
        any number of times.
        """


class KeyDirectory(Protocol):
    """The keys that may call."""

    async def authenticate(self, secret: str) -> Principal:
        """Return the principal of a secret; raise AccessError(invalid_api_key) if refused."""

    async def note_use(self, principal: Principal) -> None:
        """Record the use of a key that holds nothing, to the minute."""


class CooldownStore(Protocol):
    """Cooldowns and speeds of endpoints, shared by all instances.

    Best effort, unlike the other stores: no method raises when the store cannot be reached. An
    endpoint whose failures are unknown counts as available, one whose speed is unknown as not
    measured, and what cannot be written is not counted.
    """

    async def find_resting(
        self, endpoint_ids: Collection[str], policy: CooldownPolicy
    ) -> Mapping[str, float]:
        """Return the resting endpoints with the Unix second until which each rests."""

    async def count_failure(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        """Count a failure; return whether it is the one that makes the endpoint rest."""

    def add_answer(self, endpoint_id: str, times: "AnswerTime") -> bool:
        """Add the time of an answer to those of this instance; return whether to write them."""

    async def write_speed(self, endpoint_id: str) -> None:
        """Write the times of this instance's answers, for all instances."""

    async def find_speeds(self, endpoint_ids: Collection[str]) -> Mapping[str, "Speed"]:
        """Return the measured endpoints with their speeds."""


class SecretStore(Protocol):
    """Provider secrets, found by reference."""

    async def read(self, reference: SecretReference) -> str | None:
        """Return the secret, or None where it is not set."""

    def place(self, reference: SecretReference) -> CredentialPlace:
        """Return where the secret would be found by this process."""
