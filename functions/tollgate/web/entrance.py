"""The way of a metered request to its body: the same for answers and for counts of tokens."""

from msgspec import Struct
from starlette.datastructures import Headers
from starlette.types import Receive, Scope

from tollgate.core import tracing
from tollgate.core.errors import MethodNotAllowed
from tollgate.core.principal import Principal
from tollgate.engine.content_log import ContentLog
from tollgate.engine.gateway import Gateway
from tollgate.ingress.base import ParsedCall
from tollgate.web.access import METERED
from tollgate.web.auth import authenticate
from tollgate.web.cors import WebLimits
from tollgate.web.paths import METERED_METHODS
from tollgate.web.reply import read_body
from tollgate.web.request_services import Gateways, RequestServices


class Entered(Struct, frozen=True, kw_only=True):
    """A request whose caller is known."""

    headers: Headers
    principal: Principal
    gateway: Gateway
    body: bytes


class Entrance:
    """Admits the requests of one client format.

    `responses` has the stored responses of a format whose requests may name them, None for others.
    """

    def __init__(
        self,
        services: RequestServices,
        gateways: Gateways,
        limits: WebLimits,
        *,
        responses: ContentLog | None,
    ) -> None:
        self.services = services
        self.gateways = gateways
        self.limits = limits
        self.responses = responses

    async def enter(self, scope: Scope, receive: Receive) -> Entered:
        """Begin the trace, authenticate, and then read the body."""
        headers = Headers(scope=scope)
        tracing.begin(headers.get("traceparent"), self.services.ids)
        if scope["method"] != "POST":
            raise MethodNotAllowed(
                f"{scope['method']} is not served here; use POST.", METERED_METHODS
            )
        principal = await authenticate(self.services.keys, headers, METERED.roles)
        gateway = await self.gateways.for_key(principal.key_id)
        body = await read_body(receive, self.limits.body_bytes_max)
        return Entered(headers=headers, principal=principal, gateway=gateway, body=body)

    async def parse_stored(self, entered: Entered) -> ParsedCall | None:
        """Return the request with the stored turns that it takes; None if its key stores none."""
        days = entered.principal.response_days
        if self.responses is None or days is None:
            return None
        # Imported with its first request: most deployments start without it.
        from tollgate.web.response_storage import parse_with_turns

        return await parse_with_turns(
            self.responses,
            entered.body,
            entered.headers,
            workspace_id=entered.principal.workspace_id,
            days=days,
        )
