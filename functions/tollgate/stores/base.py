"""What serving a generation asks of its stores.

Every method raises LedgerError(service_unavailable) when the store cannot be reached: a check
that cannot be made refuses. Only cooldowns fail open.
"""

from collections.abc import Collection, Mapping
from typing import Protocol

from msgspec import Struct

from tollgate.core.cooldown import CooldownPolicy
from tollgate.core.generation import GenerationRecord
from tollgate.core.limits import RateLimit, TierLimits
from tollgate.core.principal import Principal
from tollgate.core.secret import SecretReference


class Hold(Struct, frozen=True, kw_only=True):
    """Money set aside for one generation, in one wallet shard and in the key's state.

    `id` is the generation's id. The two amounts differ when either side had less than was asked
    (admission takes what is left); `key_buckets` are the period buckets it was taken from, which
    settling gives back to even after midnight. `key_tokens` were taken from the key's minute.
    A `covered` hold is topped up when it is about to be used up, within what the key's `tier` has.
    `crowded` says that its shard was busy, which settling it notes.
    """

    id: str
    workspace_id: str
    key_id: str
    shard: int
    wallet_nano_usd: int
    key_nano_usd: int
    key_buckets: tuple[str, ...] = ()
    key_tokens: int = 0
    rate_limit: RateLimit | None = None
    token_limit: RateLimit | None = None
    covered: bool = False
    tier: TierLimits | None = None
    crowded: bool = False


class Ledger(Protocol):
    """The money side of a generation."""

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
        """Set money aside before anything is spent; the hold's id is `first_id` if that stood.

        Of the key's own limits and those of its tier the narrower count.
        `tokens` is what the generation may use of the key's tokens per minute. A `covered` hold
        takes the whole amount or none; else whoever has anything left is admitted.
        Raises LedgerError (insufficient_credits, service_unavailable) or AccessError
        (invalid_api_key, workspace_locked, key_limit_exceeded, rate_limit_exceeded).
        """

    async def top_up(self, hold: Hold, more_nano_usd: int) -> Hold:
        """Set more aside on both sides of a hold, all of it or nothing, within the same limits.

        Raises LedgerError (insufficient_credits, key_limit_exceeded, service_unavailable) or
        AccessError; settling the hold that was handed in is right in any case.
        """

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Decide by putting the record if there is none, then give back what was not spent.

        Returns the record that stands, which is an earlier one if somebody else decided first.
        May be repeated any number of times.
        """


class KeyDirectory(Protocol):
    """Whose key it is."""

    async def authenticate(self, secret: str) -> Principal:
        """Who holds this secret; AccessError(invalid_api_key) if nobody may."""

    async def note_use(self, principal: Principal) -> None:
        """Remember that a key was used without a hold, to the minute."""


class CooldownStore(Protocol):
    """Which endpoints rest, shared by all instances.

    Best effort, unlike the other stores: it never raises that it cannot be reached. What it does
    not know does not rest, and what it cannot count is not counted.
    """

    async def resting(
        self, endpoint_ids: Collection[str], policy: CooldownPolicy
    ) -> Mapping[str, float]:
        """Those of the endpoints that rest, with the Unix second until which they do."""

    async def failed(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        """Count a failure of an endpoint; whether it is the one that makes it rest."""


class SecretStore(Protocol):
    """Provider secrets, found by reference."""

    async def read(self, reference: SecretReference) -> str | None:
        """The secret, or None where it is not set."""
