"""What the rest of Tollgate asks of its stores.

Every method raises LedgerError(service_unavailable) when the store cannot be reached: a check
that cannot be made refuses. Only cooldowns fail open.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final, Literal, Protocol

from msgspec import Struct, field

from tollgate.core.activity import Activity, GenerationFilter
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.generation import GenerationRecord
from tollgate.core.limits import Period, RateLimit, TierLimits
from tollgate.core.pages import Page
from tollgate.core.principal import Admission, KeyRole, Principal
from tollgate.core.secret import SecretReference

EntryKind = Literal["grant", "adjustment", "refund"]
# An expiry rule of the bucket stands behind each of these.
CONTENT_DAYS: Final = (1, 7, 30, 90)
KEYS_PAGE_MAX: Final = 100
ENTRIES_PAGE_MAX: Final = 100
WORKSPACES_PAGE_MAX: Final = 100


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


class KeySettings(Struct, frozen=True, kw_only=True):
    """What may be chosen of a key, and changed; limits in nano-dollars, none where absent.

    `labels` (team, member, environment) group spending. What is asked and answered is kept for
    `content_days`, one of CONTENT_DAYS, or not at all. Raises RequestError for what makes no sense.
    """

    label: str
    tier: str | None = None
    models: tuple[str, ...] | None = None
    limits_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    requests_per_minute: int = 60
    burst: int = 120
    tokens_per_minute: int | None = None
    concurrency: int | None = None
    expires_s: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    disabled: bool = False
    content_days: int | None = None

    def __post_init__(self) -> None:
        positive: dict[str, int | None] = {
            "requests_per_minute": self.requests_per_minute,
            "burst": self.burst,
            "tokens_per_minute": self.tokens_per_minute,
            "concurrency": self.concurrency,
            **{f"limits.{period}": limit for period, limit in self.limits_nano_usd.items()},
        }
        for name, value in positive.items():
            if value is not None and value <= 0:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, f"{name} must be more than 0.", param=name
                )
        if self.content_days not in (None, *CONTENT_DAYS):
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                f"content_days must be one of {', '.join(map(str, CONTENT_DAYS))}, or null.",
                param="content_days",
            )


class NewKey(KeySettings, frozen=True, kw_only=True):
    """What a key is created with."""

    workspace_id: str
    role: KeyRole = "inference"


class OldSecret(Struct, frozen=True, kw_only=True):
    """The secret that a key had before it was rotated: how long it works, when it was last used."""

    last_four: str
    expires_s: int
    last_used_s: int | None


class KeySummary(KeySettings, frozen=True, kw_only=True):
    """A key as it may be shown: never its secret.

    `used_nano_usd` is what was spent in each running period, `spent_nano_usd` in all;
    `remaining_nano_usd` has the periods with a limit, holds already taken off.
    """

    id: str
    workspace_id: str
    role: KeyRole
    prefix: str
    last_four: str
    created_s: int
    remaining_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    used_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    spent_nano_usd: int = 0
    held_nano_usd: int = 0
    last_used_s: int | None = None
    old_secret: OldSecret | None = None


class CreatedKey(Struct, frozen=True, kw_only=True):
    """A key with its new secret, which is shown this once."""

    secret: str
    summary: KeySummary


class KeyStore(Protocol):
    """Keys: authentication and administration."""

    async def authenticate(self, secret: str) -> Principal:
        """Who holds this secret; AccessError(invalid_api_key) if nobody may."""

    async def note_use(self, principal: Principal) -> None:
        """Remember that a key was used without a hold, to the minute."""

    async def create(self, new: NewKey) -> CreatedKey:
        """Make a key."""

    async def get(self, workspace_id: str, key_id: str) -> KeySummary | None:
        """One key with what it has spent and what is left."""

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = KEYS_PAGE_MAX
    ) -> Page[KeySummary]:
        """Keys of a workspace, oldest first, those after the key with the id `after`."""

    async def change(
        self, workspace_id: str, key_id: str, edit: Callable[[KeySettings], KeySettings]
    ) -> KeySummary | None:
        """Replace a key's settings by what `edit` makes of them, called again if others interfere.

        A key that is disabled or expires is refused everywhere within five seconds.
        """

    async def rotate(self, workspace_id: str, key_id: str, *, grace_s: int) -> CreatedKey | None:
        """Give a key a new secret; the old one works for `grace_s` more, one before that no more.

        Everything else of the key stays: id, limits, what it has spent.
        """

    async def delete(self, workspace_id: str, key_id: str) -> bool | None:
        """Refuse a key for good; True once it is gone, False while a generation of it runs.

        To be repeated until it is gone. None if there is no such key.
        """


class Balance(Struct, frozen=True, kw_only=True):
    """A workspace's money: `available + held + spent = granted` at any instant."""

    granted_nano_usd: int
    available_nano_usd: int
    held_nano_usd: int
    spent_nano_usd: int


class CreditEntry(Struct, frozen=True, kw_only=True):
    """One line of a workspace's credit ledger, never changed; a negative amount takes back.

    `id` is the caller's name for it, which makes it single. A refund names its generation.
    """

    id: str
    workspace_id: str
    kind: EntryKind
    amount_nano_usd: int
    note: str
    created_s: int
    generation_id: str | None = None

    def __post_init__(self) -> None:
        if self.amount_nano_usd <= 0 and not (self.kind == "adjustment" and self.amount_nano_usd):
            raise ValueError(f"a {self.kind} must be positive")


class CreditStore(Protocol):
    """Workspaces' money, apart from generations."""

    async def grant(
        self, workspace_id: str, grant_id: str, amount_nano_usd: int, source: str
    ) -> bool:
        """Add credit once for a grant id; False if that id was granted before."""

    async def enter(self, entry: CreditEntry) -> bool:
        """Write an entry once for its id; False if that id was written before.

        Raises RequestError where more would be taken back than is available.
        """

    async def entries(
        self, workspace_id: str, *, after: str | None = None, limit: int = ENTRIES_PAGE_MAX
    ) -> Page[CreditEntry]:
        """Entries of a workspace, latest first; `after` is the `next` of the page before."""

    async def balance(self, workspace_id: str) -> Balance:
        """The workspace's money, read consistently."""


class WorkspaceSettings(Struct, frozen=True, kw_only=True):
    """What may be chosen of a workspace, and changed.

    `admission` None leaves it to the catalog. The budget is what may be spent in a UTC month;
    `pause_at_budget` locks the workspace when it is, until the month ends or the budget is raised.
    """

    admission: Admission | None = None
    budget_nano_usd: int | None = None
    pause_at_budget: bool = False

    def __post_init__(self) -> None:
        if self.budget_nano_usd is not None and self.budget_nano_usd <= 0:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "budget must be more than 0.", param="budget"
            )


class Workspace(Struct, frozen=True, kw_only=True):
    """A workspace as it stands; `locked` by an administrator, `paused` by its budget."""

    id: str
    shards: int
    created_s: int
    locked: bool = False
    paused: bool = False
    settings: WorkspaceSettings = WorkspaceSettings()


class WorkspaceStore(Protocol):
    """Workspaces, apart from their money."""

    async def create(self, workspace_id: str, settings: WorkspaceSettings) -> Workspace | None:
        """Make a workspace; None if there is one of that name."""

    async def get(self, workspace_id: str) -> Workspace | None:
        """One workspace."""

    async def list(
        self, *, after: str | None = None, limit: int = WORKSPACES_PAGE_MAX
    ) -> Page[Workspace]:
        """Workspaces in the order of their names, those after the one named `after`."""

    async def change(
        self, workspace_id: str, edit: Callable[[WorkspaceSettings], WorkspaceSettings]
    ) -> Workspace | None:
        """Replace the settings by what `edit` makes of them."""

    async def set_locked(self, workspace_id: str, *, locked: bool) -> Workspace | None:
        """Let nothing more be spent from the next hold on, or let it again."""


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
    ) -> Page[GenerationRecord]:
        """Records of this workspace, newest first, made before the id `before`.

        Reads so much and no more: a page may be short, or empty, and still have a next one.
        """


class ActivityStore(Protocol):
    """What generations add up to."""

    async def activity(self, workspace_id: str, since_s: int, until_s: int) -> Activity:
        """All of every UTC day that lies at least partly in [since_s, until_s)."""


class CooldownPolicy(Struct, frozen=True, kw_only=True):
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

    async def failed(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        """Count a failure of an endpoint; whether it is the one that makes it rest."""


class SecretStore(Protocol):
    """Provider secrets, found by reference."""

    async def read(self, reference: SecretReference) -> str | None:
        """The secret, or None where it is not set."""
