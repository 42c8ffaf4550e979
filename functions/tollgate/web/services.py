"""What the api routes work with, and who may call them."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct
from starlette.requests import Request

from tollgate.core.clock import Clock
from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.engine.content_log import ContentLog
from tollgate.engine.gateway import Journal
from tollgate.ingress.base import Ingress
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.schema import KeyTierSection
from tollgate.stores.administration import (
    ActivityStore,
    CreditStore,
    GenerationStore,
    KeyStore,
    WorkspaceStore,
)
from tollgate.stores.base import CooldownStore
from tollgate.web.auth import authenticated


class Catalogs(Protocol):
    """The catalogs that are served."""

    async def for_key(self, key_id: str | None) -> Catalog:
        """What serves a key; whoever has none sees what is live."""


class Services(Struct, frozen=True, kw_only=True):
    """The stores and the catalog behind the api; `chat` is OpenAI's format, errors and all.

    Management keys of the workspace `operator_workspace` look after all workspaces.
    """

    keys: KeyStore
    workspaces: WorkspaceStore
    credits: CreditStore
    generations: GenerationStore
    activity: ActivityStore
    cooldowns: CooldownStore
    contents: ContentLog | None
    catalogs: Catalogs
    chat: Ingress
    ids: IdSource
    journal: Journal
    clock: Clock
    operator_workspace: str

    async def key_tiers(self) -> Mapping[str, KeyTierSection]:
        """The tiers that keys may be of."""
        return (await self.catalogs.for_key(None)).key_tiers

    def now_s(self) -> int:
        """The Unix second."""
        return int(self.clock.now_s())

    async def authenticated_untracked(self, request: Request) -> Principal:
        """Whoever holds a key, of which nothing is written down."""
        return await authenticated(self.keys, request.headers)

    async def caller(self, request: Request) -> Principal:
        """Whoever holds a key."""
        principal = await authenticated(self.keys, request.headers)
        await self.keys.note_use(principal)
        return principal

    async def administrator(self, request: Request) -> Principal:
        """Whoever holds a management key."""
        principal = await authenticated(self.keys, request.headers, role="management")
        await self.keys.note_use(principal)
        return principal

    async def operator(self, request: Request) -> Principal:
        """Whoever holds a management key of the operator's workspace."""
        principal = await self.administrator(request)
        if principal.workspace_id != self.operator_workspace:
            raise AccessError(
                ErrorCode.PERMISSION_DENIED,
                f"This needs a management key of the workspace {self.operator_workspace}.",
            )
        return principal

    def check_content_days(self, days: int | None) -> None:
        """RequestError where a key should have its content kept and there is no place for it."""
        if days is not None and self.contents is None:
            raise RequestError(
                ErrorCode.INVALID_REQUEST,
                "This deployment has no bucket to keep content in.",
                param="content_days",
            )

    async def anybody(self, request: Request) -> Principal | None:
        """Whoever calls, known only if they say so."""
        if "authorization" not in request.headers:
            return None
        return await self.caller(request)
