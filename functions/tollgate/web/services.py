"""What the api routes work with, and who may call them."""

from collections.abc import Callable
from dataclasses import dataclass

from starlette.requests import Request

from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.engine.gateway import Journal
from tollgate.ingress.base import Ingress
from tollgate.routing.catalog import Catalog
from tollgate.stores.base import ActivityStore, CreditStore, GenerationStore, KeyStore
from tollgate.web.auth import authenticated


@dataclass(frozen=True, slots=True, kw_only=True)
class Services:
    """The stores and the catalog behind the api; `errors` writes them in OpenAI's envelope."""

    keys: KeyStore
    credits: CreditStore
    generations: GenerationStore
    activity: ActivityStore
    catalog: Callable[[], Catalog]
    errors: Ingress
    ids: IdSource
    journal: Journal
    clock: Clock

    def now_s(self) -> int:
        """The Unix second it is."""
        return int(self.clock.now_s())

    async def caller(self, request: Request) -> Principal:
        """Whoever holds a key."""
        return await authenticated(self.keys, request.headers)

    async def administrator(self, request: Request) -> Principal:
        """Whoever holds a management key."""
        return await authenticated(self.keys, request.headers, role="management")

    async def anybody(self, request: Request) -> Principal | None:
        """Whoever calls, known only if they say so."""
        if "authorization" not in request.headers:
            return None
        return await self.caller(request)
