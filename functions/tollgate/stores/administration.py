"""What looking after keys, money and workspaces asks of the stores, and reading what was done.

Apart from `stores.base`, so that serving a generation does not begin with it. Every method raises
LedgerError(service_unavailable) when the store cannot be reached.
"""

from collections.abc import Callable, Mapping
from typing import Final, Literal, Protocol

from msgspec import Struct, field

from tollgate.core.activity import Activity, GenerationFilter
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.generation import GenerationRecord
from tollgate.core.limits import Period
from tollgate.core.pages import Page
from tollgate.core.principal import Admission, KeyRole
from tollgate.stores.base import KeyDirectory
from tollgate.stores.rules.key_settings import KeySettings

EntryKind = Literal["grant", "adjustment", "refund"]
KEYS_PAGE_MAX: Final = 100
ENTRIES_PAGE_MAX: Final = 100
WORKSPACES_PAGE_MAX: Final = 100


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


class KeyStore(KeyDirectory, Protocol):
    """Keys under administration."""

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

    async def entry(self, workspace_id: str, entry_id: str) -> CreditEntry | None:
        """What was written under an id."""

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
