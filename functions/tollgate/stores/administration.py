"""Protocols of the stores for administration: keys, money, workspaces, records and activity.

Kept apart from `stores.base` so that a function that only serves generations does not import it.
`by` is the actor of a change, whose entry in the audit log is written along with the change.
Every method raises LedgerError(service_unavailable) when the store cannot be reached.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from tollgate.core.activity import Activity, ActivityStream, GenerationFilter
from tollgate.core.audit import Actor, AuditEntry, AuditFilter
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files import (
    FileCaps,
    FileDownload,
    FilePurpose,
    FileUsage,
    NewFile,
    PartialUpload,
    SignedUpload,
    StoredFile,
)
from tollgate.core.generation import GenerationRecord
from tollgate.core.limits import Period
from tollgate.core.pages import Page
from tollgate.core.principal import Admission, KeyRole
from tollgate.core.statement import Month, Statement
from tollgate.stores.base import KeyDirectory
from tollgate.stores.rules.key_names import KeyName
from tollgate.stores.rules.key_settings import KeySettings, check_days

KEYS_PAGE_MAX: Final = 100
WORKSPACES_PAGE_MAX: Final = 100


class NewKey(KeySettings, frozen=True, kw_only=True):
    """The settings, workspace and role that a key is created with."""

    workspace_id: str
    role: KeyRole = "inference"


class OldSecret(Struct, frozen=True, kw_only=True):
    """The secret that a rotated key had before; refused from the Unix second `expires_s` on."""

    last_four: str
    expires_s: int
    """Unix second from which it is refused."""
    last_used_s: int | None
    """Unix second, None before its first use."""


class KeySummary(KeySettings, frozen=True, kw_only=True):
    """A key with its spending, without its secret."""

    id: str
    workspace_id: str
    role: KeyRole
    # Beginning and last characters of the secret.
    prefix: str
    last_four: str
    created_s: int
    remaining_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    """What is left of each limit in the running period, holds taken off."""
    resets_s: Mapping[Period, int | None] = field(default_factory=dict)
    """Unix second at which each limit starts anew, None for a limit that never does."""
    used_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    """What was spent in each running period, with a limit or without."""
    # What was ever spent.
    spent_nano_usd: int = 0
    held_nano_usd: int = 0
    last_used_s: int | None = None
    """Unix second, None before the first use."""
    old_secret: OldSecret | None = None
    """The secret from before a rotation, None once it is refused."""


class CreatedKey(Struct, frozen=True, kw_only=True):
    """A key with its new secret, which cannot be read again."""

    secret: str
    summary: KeySummary


class KeyStore(KeyDirectory, Protocol):
    """The keys of all workspaces."""

    async def create(self, new: NewKey, *, by: Actor) -> CreatedKey:
        """Create a key and return it with its secret.

        Raises RequestError if a key of the workspace has this name.
        """

    async def names(self, workspace_id: str) -> tuple[KeyName, ...]:
        """Return the name of every key that a workspace has or had, oldest first."""

    async def get(self, workspace_id: str, key_id: str) -> KeySummary | None:
        """Return a key with its spending; None if there is no such key."""

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = KEYS_PAGE_MAX
    ) -> Page[KeySummary]:
        """Return a page of a workspace's keys, oldest first, from the one after the key `after`."""

    async def change(
        self,
        workspace_id: str,
        key_id: str,
        edit: Callable[[KeySettings], KeySettings],
        *,
        by: Actor,
    ) -> KeySummary | None:
        """Replace a key's settings by what `edit` returns for them; None if there is no such key.

        The same settings again are no change, and make no entry in the audit log. Raises
        RequestError, and changes nothing, if another key has the new name. `edit` is called again
        if another writer came first. Every instance refuses a disabled or expired key within five
        seconds.
        """

    async def rotate(
        self, workspace_id: str, key_id: str, *, grace_s: int, by: Actor
    ) -> CreatedKey | None:
        """Give a key a new secret; None if there is no such key.

        The previous secret stays valid for `grace_s` seconds; any older one stops now. Id, limits
        and spending stay.
        """

    async def delete(self, workspace_id: str, key_id: str, *, by: Actor) -> bool | None:
        """Delete a key; return False while one of its generations still runs, True once it is gone.

        The key is refused from the first call on; the caller repeats the call until it returns
        True. None if there is no such key.
        """


class WorkspaceSettings(Struct, frozen=True, kw_only=True):
    """The settings of a workspace, which may be changed."""

    admission: Admission | None = None
    """Whom the gateway admits; None leaves it to the catalog."""
    budget_nano_usd: int | None = None
    """What may be spent in a UTC month; None is no budget."""
    pause_at_budget: bool = False
    """Whether a spent budget locks the workspace until the month ends or the budget is raised."""
    response_days: int | None = None
    """Days that responses of its keys are stored, unless a key says otherwise; None stores none."""
    file_days: int | None = None
    """Days after which its files expire, unless their uploads say otherwise; None keeps them."""

    def __post_init__(self) -> None:
        check_days("response_days", self.response_days)
        if self.budget_nano_usd is not None and self.budget_nano_usd <= 0:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "budget must be more than 0.", param="budget"
            )


class Workspace(Struct, frozen=True, kw_only=True):
    """A workspace with its state."""

    id: str
    # Wallet shards that the money is divided among.
    shards: int
    created_s: int
    locked: bool = False
    """Locked by an administrator."""
    # Locked because the budget is spent.
    paused: bool = False
    settings: WorkspaceSettings = WorkspaceSettings()
    credit_limit_nano_usd: int = 0
    """What the operator lends it, as a part of its credit."""


class WorkspaceStore(Protocol):
    """The workspaces, without their money."""

    async def create(
        self, workspace_id: str, settings: WorkspaceSettings, *, by: Actor
    ) -> Workspace | None:
        """Create a workspace; None if its id is taken."""

    async def get(self, workspace_id: str) -> Workspace | None:
        """Return a workspace, None if there is none with this id."""

    async def list(
        self, *, after: str | None = None, limit: int = WORKSPACES_PAGE_MAX
    ) -> Page[Workspace]:
        """Return a page of workspaces in the order of their ids, from the one after `after`."""

    async def change(
        self,
        workspace_id: str,
        edit: Callable[[WorkspaceSettings], WorkspaceSettings],
        *,
        by: Actor,
    ) -> Workspace | None:
        """Replace a workspace's settings by what `edit` returns for them; None if there is none."""

    async def set_locked(self, workspace_id: str, *, locked: bool, by: Actor) -> Workspace | None:
        """Lock or unlock a workspace; a locked one is refused from its next hold on."""


class AuditLog(Protocol):
    """The audit log, which the other stores write along with their changes."""

    async def page(
        self,
        workspace_id: str | None,
        wanted: AuditFilter,
        *,
        limit: int,
        before: str | None = None,
    ) -> Page[AuditEntry]:
        """Return a page of a workspace's entries, or of all, latest first, with ids below `before`.

        One call reads a bounded number of entries: a page may be short, or empty, and still have a
        `next`.
        """


class ResponseStore(Protocol):
    """The responses that callers refer to later, as JSON."""

    async def get(self, workspace_id: str, generation_id: str) -> bytes | None:
        """Return a stored response of this workspace, None if there is none, or no longer."""

    async def delete(self, workspace_id: str, generation_id: str, *, by: Actor) -> bool:
        """Delete a response; False if there is none."""


class GenerationStore(Protocol):
    """The records of generations."""

    async def get(self, workspace_id: str, generation_id: str) -> GenerationRecord | None:
        """Return a record of this workspace, read consistently; None if there is none."""

    async def page(
        self,
        workspace_id: str,
        wanted: GenerationFilter,
        *,
        limit: int,
        before: str | None = None,
    ) -> Page[GenerationRecord]:
        """Return a page of this workspace's records, newest first, with ids below `before`.

        One call reads a bounded number of records: a page may be short, or empty, and still have a
        `next`.
        """


class ActivityStore(Protocol):
    """The sums over generations by day."""

    async def activity(self, workspace_id: str, since_s: int, until_s: int) -> Activity:
        """Return the sums of every UTC day that lies at least partly in [since_s, until_s)."""

    async def read(
        self, workspace_id: str, since_s: int, until_s: int, *, after: str = ""
    ) -> ActivityStream:
        """Return such sums, of which the rows behind the place `after` are read one by one.

        LedgerError comes from the rows, too.
        """


class StatementStore(Protocol):
    """The statements of workspaces."""

    async def statement(self, workspace_id: str, month: Month) -> Statement:
        """Return the statement of a month that has begun; all zero for an unknown workspace."""


class UploadStore(Protocol):
    """The uploads in parts of all workspaces."""

    async def create(self, new: NewFile, size_bytes: int) -> PartialUpload:
        """Make room for a file; raise AccessError if its key or workspace has none."""

    async def file(self, workspace_id: str, upload_id: str) -> StoredFile | None:
        """Return the file of an upload that is pending or completed, None if there is none."""

    async def add_part(self, workspace_id: str, upload_id: str, content: bytes) -> str | None:
        """Keep a part and return its id; None if no such upload is pending."""

    async def complete(
        self, workspace_id: str, upload_id: str, part_ids: Sequence[str], md5: str | None
    ) -> PartialUpload | None:
        """Join parts as the content of a file, which is found from then on.

        Returns None if no such upload is pending. May be repeated with the same parts. Raises
        RequestError for parts or a content that are not as they were announced.
        """

    async def cancel(self, workspace_id: str, upload_id: str) -> PartialUpload | None:
        """Remove an upload with its parts; None if no such upload is pending."""


class SignedContents(Protocol):
    """The contents that are sent to a host by signed addresses."""

    async def receive(self, token: str, media_type: str, chunks: AsyncIterator[bytes]) -> None:
        """Write a content; raise GatewayError for one that the address was not signed for."""


class FileStore(Protocol):
    """The uploaded files of all workspaces."""

    caps: FileCaps

    async def create(self, new: NewFile, content: bytes) -> StoredFile:
        """Store a file; raise AccessError if its key or workspace has no room for it."""

    async def announce(
        self, new: NewFile, size_bytes: int
    ) -> tuple[StoredFile, SignedUpload] | None:
        """Make room for a file that its uploader sends to the bucket; None without a bucket.

        Raises AccessError if its key or workspace has no room for it.
        """

    async def get(self, workspace_id: str, file_id: str) -> StoredFile | None:
        """Return a file of this workspace, None if there is none, no longer, or not yet.

        Raises RequestError, once, for a file whose content is not what was announced.
        """

    async def page(
        self,
        workspace_id: str,
        *,
        limit: int,
        after: str | None = None,
        purpose: FilePurpose | None = None,
        member_id: str | None = None,
        oldest_first: bool = False,
    ) -> Page[StoredFile]:
        """Return a page of a workspace's files, from the one after the file `after`.

        A page may have fewer than `limit` files and still have a `next`.
        """

    async def delete(self, workspace_id: str, file_id: str, *, by: Actor) -> bool:
        """Delete a file with its content; False if there is none."""

    async def download(self, file: StoredFile) -> FileDownload | None:
        """Return where the content of a file is, None if it is missing."""

    async def usage(self, workspace_id: str) -> FileUsage:
        """Return what a workspace keeps."""
