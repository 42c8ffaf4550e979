"""What the rest of Tollgate asks of its stores.

Every method raises LedgerError(service_unavailable) when the store cannot be reached: a check
that cannot be made refuses. Only cooldowns fail open.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from tollgate.core.activity import Activity, GenerationFilter, GenerationPage
from tollgate.core.generation import GenerationRecord
from tollgate.core.principal import KeyRole, Principal
from tollgate.core.secret import SecretReference

Period = Literal["day", "week", "month", "total"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RateLimit:
    """Requests per minute as a token bucket: what is left now, and when it is full again."""

    limit: int
    remaining: int
    reset_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Hold:
    """Money set aside for one generation, in one wallet shard and in the key's state.

    `id` is the generation's id. The two amounts differ when either side had less than was asked
    (admission takes what is left); `key_buckets` are the period buckets it was taken from, which
    settling gives back to even after midnight.
    """

    id: str
    workspace_id: str
    key_id: str
    shard: int
    wallet_nano_usd: int
    key_nano_usd: int
    key_buckets: tuple[str, ...] = ()
    rate_limit: RateLimit | None = None


class Ledger(Protocol):
    """The money side of a generation."""

    async def hold(
        self, principal: Principal, amount_nano_usd: int, first_id: str | None = None
    ) -> Hold:
        """Set money aside before anything is spent; the hold's id is `first_id` if that stood.

        Raises LedgerError (insufficient_credits, service_unavailable) or AccessError
        (invalid_api_key, workspace_locked, key_limit_exceeded, rate_limit_exceeded).
        """

    async def settle(self, hold: Hold, record: GenerationRecord) -> GenerationRecord:
        """Decide by putting the record if there is none, then give back what was not spent.

        Returns the record that stands, which is an earlier one if somebody else decided first.
        May be repeated any number of times.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class NewKey:
    """What a key is created with; limits in nano-dollars per period, None for no limit."""

    workspace_id: str
    label: str
    role: KeyRole = "inference"
    tier: str | None = None
    models: tuple[str, ...] | None = None
    limits_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    requests_per_minute: int = 60
    burst: int = 120
    concurrency: int | None = None
    expires_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class KeySummary:
    """A key as it may be shown: never its secret."""

    id: str
    workspace_id: str
    label: str
    role: KeyRole
    prefix: str
    last_four: str
    created_s: int
    disabled: bool
    tier: str | None = None
    models: tuple[str, ...] | None = None
    limits_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    remaining_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    spent_nano_usd: int = 0
    held_nano_usd: int = 0
    requests_per_minute: int | None = None
    expires_s: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedKey:
    """A new key with its secret, which is shown this once."""

    secret: str
    summary: KeySummary


class KeyStore(Protocol):
    """Keys: authentication and administration."""

    async def authenticate(self, secret: str) -> Principal:
        """Who holds this secret; AccessError(invalid_api_key) if nobody may."""

    async def create(self, new: NewKey) -> CreatedKey:
        """Make a key."""

    async def get(self, workspace_id: str, key_id: str) -> KeySummary | None:
        """One key with what it has spent and what is left."""

    async def list(self, workspace_id: str) -> Sequence[KeySummary]:
        """All keys of a workspace, oldest first."""

    async def disable(self, workspace_id: str, key_id: str) -> KeySummary | None:
        """Stop a key; it is refused everywhere within five seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Balance:
    """A workspace's money: `available + held + spent = granted` at any instant."""

    granted_nano_usd: int
    available_nano_usd: int
    held_nano_usd: int
    spent_nano_usd: int


class CreditStore(Protocol):
    """Workspaces' money, apart from generations."""

    async def grant(
        self, workspace_id: str, grant_id: str, amount_nano_usd: int, source: str
    ) -> bool:
        """Add credit once for a grant id; False if that id was granted before."""

    async def balance(self, workspace_id: str) -> Balance:
        """The workspace's money, read consistently."""


class GenerationStore(Protocol):
    """Records of generations."""

    async def get(self, workspace_id: str, generation_id: str) -> GenerationRecord | None:
        """A record of this workspace, read consistently."""

    async def page(
        self,
        workspace_id: str,
        wanted: GenerationFilter,
        *,
        limit: int,
        before: str | None = None,
    ) -> GenerationPage:
        """Records of this workspace, newest first, made before the id `before`.

        Reads so much and no more: a page may be short, or empty, and still have a next one.
        """


class ActivityStore(Protocol):
    """What generations add up to."""

    async def activity(self, workspace_id: str, since_s: int, until_s: int) -> Activity:
        """All of every UTC day that lies at least partly in [since_s, until_s)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CooldownPolicy:
    """When an endpoint rests: after so many failures within that time, for so long."""

    after_failures: int = 3
    within_s: float = 60.0
    rest_s: float = 30.0


class CooldownStore(Protocol):
    """Which endpoints rest, shared by all instances.

    Best effort, unlike the other stores: it never raises that it cannot be reached. What it does
    not know does not rest, and what it cannot count is not counted.
    """

    async def resting(
        self, endpoint_ids: Collection[str], policy: CooldownPolicy
    ) -> Mapping[str, float]:
        """Those of the endpoints that rest, with the Unix second until which they do."""

    async def failed(self, endpoint_id: str, policy: CooldownPolicy) -> None:
        """Count a failure of an endpoint."""


class SecretStore(Protocol):
    """Provider secrets, found by reference."""

    async def read(self, reference: SecretReference) -> str | None:
        """The secret, or None where it is not set."""
