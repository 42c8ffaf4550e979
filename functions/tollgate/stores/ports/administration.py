"""Protocols of the stores for administration: keys, money, workspaces, records and activity.

This module is separate from `stores.ports.base`, so that a function that only serves generations
need not import it. `by` is the actor of a change; a change and its audit log entry are written
together. Every method raises LedgerError(service_unavailable) if the store cannot be reached.
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Final, Protocol

from msgspec import Struct, field

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files.stored import (
    FileCaps,
    FileDownload,
    FilePurpose,
    FileUsage,
    NewFile,
    PartialUpload,
    SignedUpload,
    StoredFile,
)
from tollgate.core.limits import Period
from tollgate.core.money.statement import Month, Statement
from tollgate.core.ownership import WHOLE_WORKSPACE, OwnerScope
from tollgate.core.pages import Page
from tollgate.core.principal import Admission, KeyRole, UsageOn
from tollgate.core.records.activity import Activity, ActivityStream, GenerationFilter
from tollgate.core.records.audit import Actor, AuditEntry, AuditFilter, SealedDay
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.ports.base import KeyDirectory
from tollgate.stores.rules.key_names import KeyName
from tollgate.stores.rules.key_settings import KeySettings, check_days, check_networks

KEYS_PAGE_MAX: Final = 100
WORKSPACES_PAGE_MAX: Final = 100


class NewKey(KeySettings, frozen=True, kw_only=True):
    """The settings, workspace and role of a key to create."""

    workspace_id: str
    role: KeyRole = "inference"


class OldSecret(Struct, frozen=True, kw_only=True):
    """The secret that a rotation replaced, which is valid until `expires_s`."""

    last_four: str
    expires_s: int
    """Unix second from which the secret is refused."""
    last_used_s: int | None
    """Unix second of the last use, or None if the secret was never used."""


class KeySummary(KeySettings, frozen=True, kw_only=True):
    """A key with its spending, without its secret."""

    id: str
    workspace_id: str
    role: KeyRole
    prefix: str
    """First characters of the secret."""
    last_four: str
    """Last four characters of the secret."""
    created_s: int
    secret_created_s: int
    """Unix second of the creation of the current secret."""
    remaining_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    """Remaining amount of each limit in the current period, after holds."""
    resets_s: Mapping[Period, int | None] = field(default_factory=dict)
    """Unix second at which each limit resets; None if it never does."""
    used_nano_usd: Mapping[Period, int] = field(default_factory=dict)
    """Nano-dollars spent in each current period, including periods without a limit."""
    spent_nano_usd: int = 0
    """Total nano-dollars spent."""
    held_nano_usd: int = 0
    """Nano-dollars that are currently held."""
    hold_ids: tuple[str, ...] = ()
    """Ids of the generations that the amount is held for, oldest first."""
    counters: Mapping[str, int] = field(default_factory=dict)
    """Spent and held amount of each quota in each window, by the names of the counters."""
    read_s: int = 0
    """Unix second at which the key was read, which decides the current windows of its limits."""
    last_used_s: int | None = None
    """Unix second of the last use, or None if the secret was never used."""
    last_address: str | None = None
    """Network address of a recent use; None unless the key stores it (`keep_address`)."""
    last_address_s: int | None = None
    """Unix second of that use."""
    old_secret: OldSecret | None = None
    """The secret that a rotation replaced; None once it is refused."""


class CreatedKey(Struct, frozen=True, kw_only=True):
    """A key with its new secret, which cannot be read again."""

    secret: str
    summary: KeySummary


class KeyStore(KeyDirectory, Protocol):
    """The keys of all workspaces."""

    async def create(self, new: NewKey, *, by: Actor) -> CreatedKey:
        """Create a key and return it with its secret; raise RequestError if the name is taken."""

    async def names(self, workspace_id: str) -> tuple[KeyName, ...]:
        """Return the name of every key that a workspace has or ever had, oldest first."""

    async def get(self, workspace_id: str, key_id: str) -> KeySummary | None:
        """Return a key with its spending, or None if it does not exist."""

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = KEYS_PAGE_MAX
    ) -> Page[KeySummary]:
        """Return a page of a workspace's keys after the key `after`, oldest first."""

    async def change(
        self,
        workspace_id: str,
        key_id: str,
        edit: Callable[[KeySettings], KeySettings],
        *,
        by: Actor,
    ) -> KeySummary | None:
        """Replace a key's settings with the result of `edit`; return None if the key does not
        exist.

        If the settings do not change, nothing is written, not even an audit log entry. Raises
        RequestError, without changing anything, if another key has the new name. `edit` is called
        again if another writer has changed the key in the meantime. Every instance refuses a
        disabled or expired key within five seconds.
        """

    async def rotate(
        self, workspace_id: str, key_id: str, *, grace_s: int, by: Actor
    ) -> CreatedKey | None:
        """Give a key a new secret; return None if the key does not exist.

        The previous secret stays valid for `grace_s` seconds; any older secret is refused
        immediately. The key's id, limits and spending do not change.
        """

    async def delete(self, workspace_id: str, key_id: str, *, by: Actor) -> bool | None:
        """Delete a key; return True once it is deleted, and False while its generations run.

        The first call already disables the key; the caller repeats the call until it returns True.
        Returns None if the key does not exist.
        """


class WorkspaceSettings(Struct, frozen=True, kw_only=True):
    """The settings of a workspace that can be changed."""

    admission: Admission | None = None
    """Admission policy for the workspace's requests; None to use the catalog's."""
    budget_nano_usd: int | None = None
    """Spending budget per UTC month; None for no budget."""
    pause_at_budget: bool = False
    """True to lock the workspace while its budget for the month is spent."""
    response_days: int | None = None
    """Days for which responses are stored, unless a key has its own setting; None to store none."""
    file_days: int | None = None
    """Default number of days after which files expire; None to keep files."""
    allowed_ips: str | None = None
    """Networks from which the workspace's keys and sessions may be used, separated by commas; None
    for all.
    """
    key_days: int | None = None
    """Age in days at which a key's secret is refused, so it must be rotated earlier; None for no
    limit.
    """
    usage_on: UsageOn | None = None
    """Frame of chat streams that contains the usage, unless the key or the request sets
    `usage_on`.
    """

    def __post_init__(self) -> None:
        check_days("response_days", self.response_days)
        check_networks(self.allowed_ips)
        if self.budget_nano_usd is not None and self.budget_nano_usd <= 0:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "budget must be more than 0.", param="budget"
            )


class Workspace(Struct, frozen=True, kw_only=True):
    """A workspace and its state."""

    id: str
    shards: int
    """Number of wallet shards among which the money is divided."""
    created_s: int
    locked: bool = False
    """True if an administrator has locked the workspace."""
    paused: bool = False
    """True if the workspace is locked because its budget is spent."""
    settings: WorkspaceSettings = WorkspaceSettings()
    credit_limit_nano_usd: int = 0
    """The part of the credit that the operator has lent."""


class WorkspaceStore(Protocol):
    """The workspaces; `CreditStore` has their money."""

    async def create(
        self, workspace_id: str, settings: WorkspaceSettings, *, by: Actor
    ) -> Workspace | None:
        """Create a workspace; return None if its id is taken."""

    async def get(self, workspace_id: str) -> Workspace | None:
        """Return a workspace, or None if it does not exist."""

    async def list(
        self, *, after: str | None = None, limit: int = WORKSPACES_PAGE_MAX
    ) -> Page[Workspace]:
        """Return a page of workspaces after the id `after`, in the order of ids."""

    async def change(
        self,
        workspace_id: str,
        edit: Callable[[WorkspaceSettings], WorkspaceSettings],
        *,
        by: Actor,
    ) -> Workspace | None:
        """Replace the settings with the result of `edit`; return None if there is no such
        workspace.
        """

    async def set_locked(self, workspace_id: str, *, locked: bool, by: Actor) -> Workspace | None:
        """Lock or unlock a workspace; requests of a locked workspace are refused."""


class AuditLog(Protocol):
    """The audit log; the other stores write the entries together with their changes."""

    async def page(
        self,
        workspace_id: str | None,
        wanted: AuditFilter,
        *,
        limit: int,
        before: str | None = None,
    ) -> Page[AuditEntry]:
        """Return a page of a workspace's entries (or all entries) with ids below `before`, latest
        first.

        One call reads a limited number of entries, so a page may be short or empty and still have a
        `next`.
        """

    async def check(self, workspace_id: str | None, first: str, last: str) -> Sequence[SealedDay]:
        """Compare the UTC days in [first, last] (`2026-11-21`) with their seals, oldest first."""


class ClearableCache(Protocol):
    """The answers that identical requests of a workspace may get."""

    async def clear(self, workspace_id: str, *, by: Actor) -> int:
        """Delete a workspace's answers, at most a bounded number, and return their number."""


class ResponseStore(Protocol):
    """The stored responses that later requests can refer to, as JSON."""

    async def get(self, workspace_id: str, generation_id: str) -> bytes | None:
        """Return a stored response of this workspace, or None if it is missing or expired."""

    async def delete(self, workspace_id: str, generation_id: str, *, by: Actor) -> bool:
        """Delete a response; return False if it does not exist."""


class GenerationStore(Protocol):
    """The records of generations."""

    async def get(self, workspace_id: str, generation_id: str) -> GenerationRecord | None:
        """Return a record of this workspace by a consistent read, or None if it does not exist."""

    async def page(
        self,
        workspace_id: str,
        wanted: GenerationFilter,
        *,
        limit: int,
        before: str | None = None,
    ) -> Page[GenerationRecord]:
        """Return a page of this workspace's records below id `before`, newest first.

        One call reads a limited number of records, so a page may be short or empty and still have a
        `next`.
        """


class ActivityStore(Protocol):
    """Daily sums over generations."""

    async def activity(self, workspace_id: str, since_s: int, until_s: int) -> Activity:
        """Return the sums of every UTC day that lies at least partly in [since_s, until_s)."""

    async def read(
        self, workspace_id: str, since_s: int, until_s: int, *, after: str = ""
    ) -> ActivityStream:
        """Return the sums of `activity` as a stream of rows, starting after the position `after`.

        Iterating over the rows may also raise LedgerError.
        """


class StatementStore(Protocol):
    """The statements of workspaces."""

    async def statement(self, workspace_id: str, month: Month) -> Statement:
        """Return the statement for a month that has begun; for an unknown workspace, all amounts
        are zero.
        """


class UploadStore(Protocol):
    """The uploads in parts of all workspaces."""

    async def create(self, new: NewFile, size_bytes: int) -> PartialUpload:
        """Reserve room for a file; raise AccessError if its key's or workspace's cap is reached."""

    async def file(self, workspace_id: str, upload_id: str) -> StoredFile | None:
        """Return the file of a pending or completed upload, or None if there is none."""

    async def add_part(self, workspace_id: str, upload_id: str, content: bytes) -> str | None:
        """Store a part and return its id, or None if the upload is not pending."""

    async def complete(
        self, workspace_id: str, upload_id: str, part_ids: Sequence[str], md5: str | None
    ) -> PartialUpload | None:
        """Join parts into the content of a file, which can be found from then on.

        Return None if the upload is not pending. A retry with the same parts is safe. Raise
        RequestError if the parts or the content differ from the announcement; the upload then stays
        pending.
        """

    async def cancel(self, workspace_id: str, upload_id: str) -> PartialUpload | None:
        """Remove an upload and its parts; return None if the upload is not pending."""


class SignedContents(Protocol):
    """The files that clients upload to signed URLs of this host."""

    async def receive(self, token: str, media_type: str, chunks: AsyncIterator[bytes]) -> None:
        """Write a file; raise GatewayError if the URL was not signed for this file."""


class FileStore(Protocol):
    """The uploaded files of all workspaces."""

    caps: FileCaps

    async def create(self, new: NewFile, content: bytes) -> StoredFile:
        """Store a file; raise AccessError if its key's or workspace's cap is reached."""

    async def announce(
        self, new: NewFile, size_bytes: int
    ) -> tuple[StoredFile, SignedUpload] | None:
        """Reserve room for a file that the client will upload; return None if there is no bucket.

        Raises AccessError if the cap of its key or workspace is reached.
        """

    async def get(self, workspace_id: str, file_id: str) -> StoredFile | None:
        """Return a file of this workspace, or None if it is missing, expired or not yet uploaded.

        Raise RequestError, once, if the content differs from the announcement.
        """

    async def page(
        self,
        workspace_id: str,
        *,
        limit: int,
        after: str | None = None,
        purpose: FilePurpose | None = None,
        reach: OwnerScope = WHOLE_WORKSPACE,
        oldest_first: bool = False,
    ) -> Page[StoredFile]:
        """Return a page of a workspace's files after the file `after`.

        A page may have fewer than `limit` files and still have a `next`.
        """

    async def delete(self, workspace_id: str, file_id: str, *, by: Actor) -> bool:
        """Delete a file and its content; return False if it does not exist."""

    async def download(self, file: StoredFile) -> FileDownload | None:
        """Return the URL or path of a file's content; None if it is missing."""

    async def usage(self, workspace_id: str) -> FileUsage:
        """Return the number and size of a workspace's files."""
