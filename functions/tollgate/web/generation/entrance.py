"""The base of metered endpoints, and the steps that authenticate a request and read its body.

Generations and token counts share this module.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct
from starlette.types import Receive, Scope, Send

from tollgate.core import tracing
from tollgate.core.clock import Clock
from tollgate.core.errors import MethodNotAllowed
from tollgate.core.ids import IdSource
from tollgate.core.principal import Principal
from tollgate.engine.gateway import Gateway, Journal
from tollgate.engine.replies.content_log import ContentLog
from tollgate.engine.replies.sink import ClientGone
from tollgate.ingress.base import Ingress, ParsedCall
from tollgate.ingress.formats import IngressFormat
from tollgate.stores.ports.base import KeyDirectory
from tollgate.web.access import METERED, authenticate
from tollgate.web.http.cors import WebLimits
from tollgate.web.http.paths import METERED_METHODS
from tollgate.web.http.reply import AsgiReply, read_body


class RequestServices(Struct, frozen=True, kw_only=True):
    """Dependencies that are the same for every request and catalog."""

    keys: KeyDirectory
    ingresses: Mapping[str, Ingress]
    """The ingress of each row of `ingress.formats`, by name."""
    clock: Clock
    ids: IdSource
    journal: Journal


class Gateways(Protocol):
    """Source of the gateway that serves a key."""

    async def for_key(self, key_id: str) -> Gateway:
        """Return the gateway that serves a request of this key from start to end."""

    async def finish_loading(self) -> None:
        """Wait until background loads have ended; called after each reply."""


class Entered(Struct, frozen=True, kw_only=True):
    """A request with its authenticated caller."""

    headers: Mapping[str, str]
    """Headers by lower-case name, with the first value of a repeated header."""
    principal: Principal
    gateway: Gateway
    body: bytes


class Entrance:
    """Authenticates the requests of one client format and reads their bodies.

    `responses` stores responses, if requests of the format may refer to stored responses; otherwise
    None.
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
        # The headers are decoded once, because each look-up in Starlette's `Headers` searches all
        # of them.
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(scope["headers"])
        }
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
        """Return the request with the stored turns that it refers to; None if its key stores no
        responses.
        """
        days = entered.principal.response_days
        if self.responses is None or days is None:
            return None
        # Imported here because most deployments never store responses.
        from tollgate.web.records.response_storage import parse_with_turns

        return await parse_with_turns(
            self.responses,
            entered.body,
            entered.headers,
            workspace_id=entered.principal.workspace_id,
            days=days,
        )


class FormatEndpoint(ABC):
    """The base of an ASGI endpoint that serves metered requests in one client format."""

    def __init__(self, format_: IngressFormat, entrance: Entrance) -> None:
        self._format = format_
        self._entrance = entrance
        self._services = entrance.services

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        reply = AsgiReply(send, id_header=self._format.id_header)
        try:
            await self._serve(scope, receive, reply)
        except ClientGone:
            return
        finally:
            await self._entrance.gateways.finish_loading()

    @property
    def _ingress(self) -> Ingress:
        return self._services.ingresses[self._format.name]

    @abstractmethod
    async def _serve(self, scope: Scope, receive: Receive, reply: AsgiReply) -> None:
        """Reply to one request, with failures in the format's envelope."""
