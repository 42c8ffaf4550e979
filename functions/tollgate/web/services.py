"""The stores behind the API routes, and the authorization of callers."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol

from msgspec import Struct, field
from msgspec.structs import replace

from tollgate.core.clock import DAY_S, Clock
from tollgate.core.errors import invalid_request, not_found, permission_denied
from tollgate.core.files.stored import NewFile
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.core.records.audit import Actor
from tollgate.core.records.subjects import is_held, on_hold
from tollgate.core.routing.publication import Publications
from tollgate.core.secret import CredentialPlace
from tollgate.core.shadows import ShadowRun
from tollgate.core.webhooks import WebhookStore
from tollgate.engine.gateway import FileReader, Journal
from tollgate.engine.replies.content_log import ContentLog
from tollgate.engine.replies.kept_answers import AnswerStore
from tollgate.engine.side_thread import SideThread
from tollgate.ingress.base import Ingress
from tollgate.providers.ports.base import ProviderRow
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.schema import KeyTierSection
from tollgate.stores.ports.access_log import AccessLog, ReadContent
from tollgate.stores.ports.administration import (
    ActivityStore,
    AuditLog,
    ClearableCache,
    FileStore,
    GenerationStore,
    KeyStore,
    ResponseStore,
    StatementStore,
    UploadStore,
    Workspace,
    WorkspaceStore,
)
from tollgate.stores.ports.base import CooldownStore
from tollgate.stores.ports.batches import (
    BackgroundServices,
    BatchQueue,
    BatchStore,
    JobStore,
    VideoServices,
)
from tollgate.stores.ports.credit import CreditStore
from tollgate.stores.ports.people import MemberStore, PlaygroundStore, SessionStore, TeamStore
from tollgate.stores.ports.subjects import SubjectStore
from tollgate.stores.rules.key_names import KeyName, find_key_id
from tollgate.tools.ports.base import ServerTools
from tollgate.web.access import Access, authenticate, has_key
from tollgate.web.own import Own


class Catalogs(Protocol):
    """Provides the catalog that serves a key."""

    async def for_key(self, key_id: str | None) -> Catalog:
        """Return the catalog that serves a key, or the live catalog if there is no key."""


class Services(Struct, frozen=True, kw_only=True):
    """The stores and catalogs that the API routes use."""

    keys: KeyStore
    teams: TeamStore
    members: MemberStore
    sessions: SessionStore
    playgrounds: PlaygroundStore
    workspaces: WorkspaceStore
    credits: CreditStore
    generations: GenerationStore
    activity: ActivityStore
    statements: StatementStore
    audit_log: AuditLog
    access_log: AccessLog
    webhooks: WebhookStore
    subjects: SubjectStore
    cooldowns: CooldownStore
    contents: ContentLog | None
    """None in a deployment without a bucket for content."""
    responses: ResponseStore | None
    """None in a deployment without a bucket for content."""
    files: FileStore | None
    """Uploaded files; None in a deployment that has neither a bucket nor a folder."""
    uploads: UploadStore | None
    """Uploads in parts; None in a deployment that has neither a bucket nor a folder."""
    batches: BatchStore | None = None
    """Batches; None in a deployment that has neither a bucket nor a folder."""
    batch_queue: BatchQueue | None = None
    """The queue that wakes workers; None if the workers of this host look for batches."""
    background: BackgroundServices | None = None
    """Background responses; None in a deployment that stores no responses."""
    videos: VideoServices | None = None
    """Videos; None in a deployment that has neither a bucket nor a folder."""
    shadows: JobStore[ShadowRun] | None = None
    """Shadow runs, which name the shadows of a generation; None in a deployment without a bucket
    for content.
    """
    named_files: FileReader | None
    """Reader of the uploaded files that requests refer to."""
    answers: AnswerStore | None
    """Stored replies for Idempotency-Key; None in a deployment that has neither a bucket nor a
    folder.
    """
    answer_cache: ClearableCache | None = None
    """Stored answers for identical requests; None in a deployment that has neither a bucket nor a
    folder.
    """
    catalogs: Catalogs
    publications: Publications
    formats: Mapping[str, Ingress]
    """Client formats by name, which parse the bodies of explanations."""
    ids: IdSource
    journal: Journal
    clock: Clock
    operator_workspace: str
    """The workspace whose management keys administer all workspaces."""
    side: SideThread = field(default_factory=SideThread)
    """The thread for long computations."""
    make_tools: Callable[[Catalog], ServerTools] | None = None
    """Creates the tools configured in a catalog, to explain their bounds."""
    find_missing_key: Callable[[ProviderRow], Awaitable[CredentialPlace | None]] | None = None
    """Finds the places where a provider's missing key could be set, in processes that call
    providers.
    """
    job_region: str | None = None
    """The region of the bucket for batches of Bedrock; None without a bucket or without a role."""

    async def key_tiers(self) -> Mapping[str, KeyTierSection]:
        """Return the key tiers of the live catalog by name."""
        return (await self.catalogs.for_key(None)).key_tiers

    async def find_key_id(self, key: str | None, own: Own) -> str | None:
        """Return the id of the key that a query names by name or id; None if `key` is None.

        Raises RequestError if the caller can access no such key, or if several keys have the name.
        """
        if key is None:
            return None
        names = (
            await self.keys.names(own.workspace_id)
            if own.is_all
            else [name async for name in self._own_names(own)]
        )
        return find_key_id(names, key, param="key")

    async def _own_names(self, own: Own) -> AsyncIterator[KeyName]:
        """Yield the names of a member's keys, so that an error message does not suggest
        other keys.
        """
        after: str | None = None
        while True:
            page = await self.keys.list(own.workspace_id, after=after)
            for key in page.found:
                if own.has_key(key):
                    yield KeyName(key.id, key.label)
            after = page.next
            if after is None:
                return

    async def find_workspace(self, workspace_id: str) -> Workspace:
        """Return a workspace; raise RequestError(not_found) if there is none with this id."""
        workspace = await self.workspaces.get(workspace_id)
        if workspace is None:
            raise not_found(f"There is no workspace {workspace_id!r}.", "workspace_id")
        return workspace

    async def is_funded(self, workspace_id: str) -> bool:
        """Return whether a workspace has credit, held or not."""
        balance = await self.credits.balance(workspace_id)
        return balance.available_nano_usd + balance.held_nano_usd > 0

    async def for_workspace(self, new: NewFile) -> NewFile:
        """Return a file to store, with its workspace's settings: the cap and the expiry.

        The expiry is the workspace's default, unless the file sets its own.
        """
        new = replace(new, is_funded=await self.is_funded(new.workspace_id))
        if new.expires_after_s is not None:
            return new
        workspace = await self.workspaces.get(new.workspace_id)
        days = None if workspace is None else workspace.settings.file_days
        return new if days is None else replace(new, expires_after_s=days * DAY_S)

    async def note_read(
        self, principal: Principal, kind: ReadContent, target: str, *, by: Actor
    ) -> None:
        """Record that a person or a management key reads content, before the content is sent.

        Programs read the content of their own requests with inference keys, which is not recorded.
        """
        if principal.role != "inference":
            await self.access_log.note_read(kind, target, by=by)

    async def check_response_holds(self, workspace_id: str, generation_id: str) -> None:
        """Raise AccessError if a legal hold covers the response of a generation."""
        holds = await self.subjects.holds(workspace_id)
        record = await self.generations.get(workspace_id, generation_id) if holds else None
        if record is not None and is_held(record, holds):
            raise on_hold()

    async def check_file_holds(self, workspace_id: str, file_id: str) -> None:
        """Raise AccessError if a legal hold covers a file."""
        holds = await self.subjects.holds(workspace_id)
        if not holds or self.files is None:
            return
        file = await self.files.get(workspace_id, file_id)
        if file is not None and any(hold.subject.has_member(file.member_id) for hold in holds):
            raise on_hold()

    def now_s(self) -> int:
        """Return the current Unix second."""
        return int(self.clock.now_s())

    async def admit(
        self, headers: Mapping[str, str], access: Access, *, source: str | None
    ) -> Principal | None:
        """Authenticate a caller from an address for a route, and record the last use of the key.

        Returns None for a caller without a key, if the route serves such callers. Raises
        AccessError(invalid_api_key), or AccessError(permission_denied) for a key of another role or
        workspace.
        """
        if not access.roles or (access.keyless and not has_key(headers)):
            return None
        principal = await authenticate(self.keys, headers, access.roles, source=source)
        if access.operator:
            self.check_operator(principal)
        if access.notes_use:
            await self.keys.note_use(principal)
            await self.keys.note_address(principal, source)
        return principal

    def is_operator(self, principal: Principal) -> bool:
        """Return whether a key belongs to the operator's workspace."""
        return principal.workspace_id == self.operator_workspace

    def check_operator(self, principal: Principal) -> None:
        """Raise AccessError(permission_denied) unless a key belongs to the operator's workspace."""
        if not self.is_operator(principal):
            raise permission_denied(f"This needs a key of the workspace {self.operator_workspace}.")

    def check_days(self, days: Mapping[str, int | None]) -> None:
        """Raise RequestError if a setting would store content and the deployment has no bucket.

        `days` has the values of the settings that store content, by name.
        """
        for name, number in days.items():
            if number is not None and self.contents is None:
                raise invalid_request("This deployment has no bucket for content.", name)
