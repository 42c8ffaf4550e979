"""Workspaces in this process's memory."""

from collections.abc import Callable

from msgspec.structs import replace

from tests.memory.books import MemoryBooks, MemoryWallet
from tollgate.core.clock import Clock
from tollgate.core.pages import Page
from tollgate.stores.administration import WORKSPACES_PAGE_MAX, Workspace, WorkspaceSettings


class MemoryWorkspaceStore:
    """Implements `stores.administration.WorkspaceStore`."""

    def __init__(self, books: MemoryBooks, clock: Clock) -> None:
        self._books = books
        self._clock = clock
        self._workspaces: dict[str, Workspace] = {}

    async def create(self, workspace_id: str, settings: WorkspaceSettings) -> Workspace | None:
        """Create a workspace; None if its id is taken."""
        if workspace_id in self._workspaces:
            return None
        self._workspaces[workspace_id] = Workspace(
            id=workspace_id, shards=1, created_s=int(self._clock.now_s()), settings=settings
        )
        return self._workspaces[workspace_id]

    async def get(self, workspace_id: str) -> Workspace | None:
        """Return a workspace, None if there is none with this id."""
        return self._workspaces.get(workspace_id)

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
        self, workspace_id: str, edit: Callable[[WorkspaceSettings], WorkspaceSettings]
    ) -> Workspace | None:
        """Replace the settings by what `edit` returns for them."""
        workspace = self._workspaces.get(workspace_id)
        if workspace is None:
            return None
        changed = replace(workspace, settings=edit(workspace.settings))
        self._workspaces[workspace_id] = changed
        return changed

    async def set_locked(self, workspace_id: str, *, locked: bool) -> Workspace | None:
        """Lock or unlock a workspace."""
        workspace = self._workspaces.get(workspace_id)
        if workspace is None:
            return None
        self._books.wallets.setdefault(workspace_id, MemoryWallet()).locked = locked
        self._workspaces[workspace_id] = replace(workspace, locked=locked)
        return self._workspaces[workspace_id]
