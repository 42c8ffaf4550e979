"""Workspaces in this process's memory."""

from collections.abc import Callable

from msgspec import Struct
from msgspec.structs import replace

from tests.memory.books import MemoryBooks, MemoryWallet
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.pages import Page
from tollgate.core.records.audit import Actor
from tollgate.stores.ports.administration import WORKSPACES_PAGE_MAX, Workspace, WorkspaceSettings
from tollgate.stores.rules.audit_entries import AuditedChange, LockChange, new_entry


class MemoryWorkspaceStore:
    """Implements `stores.ports.administration.WorkspaceStore`."""

    def __init__(self, books: MemoryBooks, clock: Clock) -> None:
        self._books = books
        self._clock = clock
        self._workspaces: dict[str, Workspace] = {}

    async def create(
        self, workspace_id: str, settings: WorkspaceSettings, *, by: Actor
    ) -> Workspace | None:
        """Create a workspace; None if its id is taken."""
        if workspace_id in self._workspaces:
            return None
        self._workspaces[workspace_id] = Workspace(
            id=workspace_id, shards=1, created_s=int(self._clock.now_s()), settings=settings
        )
        self._books.workspace_settings[workspace_id] = settings
        self._note(by, "workspace.create", workspace_id, None, settings)
        return self._workspaces[workspace_id]

    async def get(self, workspace_id: str) -> Workspace | None:
        """Return a workspace, None if there is none with this id."""
        found = self._workspaces.get(workspace_id)
        lent = self._books.credit_limits.get(workspace_id, 0)
        return None if found is None else replace(found, credit_limit_nano_usd=lent)

    async def list(
        self, *, after: str | None = None, limit: int = WORKSPACES_PAGE_MAX
    ) -> Page[Workspace]:
        """Return a page of workspaces in the order of their ids."""
        names = sorted(name for name in self._workspaces if after is None or name > after)
        page = names[:limit]
        return Page(
            found=tuple(self._workspaces[name] for name in page),
            next=page[-1] if len(names) > limit else None,
        )

    async def change(
        self,
        workspace_id: str,
        edit: Callable[[WorkspaceSettings], WorkspaceSettings],
        *,
        by: Actor,
    ) -> Workspace | None:
        """Replace the settings by what `edit` returns for them."""
        workspace = self._workspaces.get(workspace_id)
        if workspace is None:
            return None
        old, new = workspace.settings, edit(workspace.settings)
        changed = replace(workspace, settings=new)
        if new != old:
            self._workspaces[workspace_id] = changed
            self._books.workspace_settings[workspace_id] = new
            self._note(by, "workspace.change", workspace_id, old, new)
        return changed

    async def set_locked(self, workspace_id: str, *, locked: bool, by: Actor) -> Workspace | None:
        """Lock or unlock a workspace."""
        workspace = self._workspaces.get(workspace_id)
        if workspace is None:
            return None
        if locked != workspace.locked:
            before, after = LockChange(locked=workspace.locked), LockChange(locked=locked)
            action = "workspace.lock" if locked else "workspace.unlock"
            self._note(by, action, workspace_id, before, after)
        self._books.wallets.setdefault(workspace_id, MemoryWallet()).locked = locked
        self._workspaces[workspace_id] = replace(workspace, locked=locked)
        return self._workspaces[workspace_id]

    def _note(
        self, by: Actor, action: str, workspace_id: str, before: Struct | None, after: Struct
    ) -> None:
        change = AuditedChange(
            action=action,
            target=workspace_id,
            workspace_id=workspace_id,
            before=before,
            after=after,
        )
        self._books.entries_of_audit.append(
            new_entry(change, by, ids=IdSource(self._clock), clock=self._clock)
        )
