"""The base of metered endpoints, and the steps that authenticate a request and read its body.

Generations and token counts share this module.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from functools import partial
from typing import Final, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace
from starlette.types import Receive, Scope, Send

from tollgate.core import tracing
from tollgate.core.clock import Clock
from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import AccessError
from tollgate.core.ids import IdSource
from tollgate.core.ownership import OwnerScope
from tollgate.core.principal import PLAYGROUND, SOURCE_LABEL, Principal
from tollgate.engine.admission import admit
from tollgate.engine.gateway import Gateway, Journal
from tollgate.engine.replies.content_log import ContentLog
from tollgate.engine.replies.sink import ClientGone
from tollgate.engine.side_thread import LARGE_BYTES
from tollgate.ingress.base import NO_HEADERS, Ingress, ParsedCall, ParsedWork, Seal
from tollgate.ingress.format_rows import IngressFormat
from tollgate.ingress.formats import COMPACT
from tollgate.stores.ports.access_log import AccessLog
from tollgate.stores.ports.base import KeyDirectory, SealKeys
from tollgate.web.access import METERED, actor_of, authenticate, note_refusal
from tollgate.web.generation.idempotency import IDEMPOTENCY_KEY
from tollgate.web.generation.recorded_reads import RecordedFiles, RecordedReads
from tollgate.web.http.cors import WebLimits
from tollgate.web.http.paths import refuse_method
from tollgate.web.http.reply import AsgiReply, is_large_body, read_body
from tollgate.web.http.request_id import request_id_of
from tollgate.web.http.source_address import source_of
from tollgate.web.http.unknown_callers import pace_refusal

# Every request that contains or triggers a compaction contains this word.
_COMPACTION: Final = b"compaction"
_WORKSPACE_SEAL: Final = DottedName[Callable[..., Seal]](
    "tollgate.ingress.responses.sealing:WorkspaceSeal"
)

_Result = TypeVar("_Result")


class RequestServices(Struct, frozen=True, kw_only=True):
    """Dependencies that are the same for every request and catalog."""

    keys: KeyDirectory
    access_log: Callable[[], AccessLog]
    """Returns the access log, which is imported at the first refusal."""
    ingresses: Mapping[str, Ingress]
    """The ingress for each row of `ingress.formats`, keyed by name."""
    clock: Clock
    ids: IdSource
    journal: Journal


class Gateways(Protocol):
    """Provides the gateway that serves a key."""

    async def for_key(self, key_id: str) -> Gateway:
        """Return the gateway that serves a request of this key from start to end."""

    async def finish_loading(self) -> None:
        """Wait until background loads have ended; called after each reply."""


class Entered(Struct, frozen=True, kw_only=True):
    """A request with its authenticated caller."""

    headers: Mapping[str, str]
    """Headers by lower-case name, with the first value of a repeated header."""
    principal: Principal
    request_id: str
    reach: OwnerScope
    """The stored objects that the request may refer to."""
    gateway: Gateway
    body: bytes
    is_large: bool
    """True if parsing the body may take more than a few milliseconds."""
    reads: RecordedReads | None = None
    """Records reads of a caller that reaches the whole workspace."""


class Entrance:
    """Authenticates the requests of one client format and reads their bodies.

    `responses` stores responses, and `seals` has the keys of compaction items; each is None if
    requests of the format may not refer to them.
    """

    def __init__(
        self,
        services: RequestServices,
        gateways: Gateways,
        limits: WebLimits,
        *,
        responses: ContentLog | None,
        seals: SealKeys | None = None,
    ) -> None:
        self.services = services
        self.gateways = gateways
        self.limits = limits
        self.responses = responses
        self._seals = seals

    async def enter(self, scope: Scope, receive: Receive, *, holds: bool = True) -> Entered:
        """Begin the trace, authenticate, and then read the body.

        `holds` is False for requests that hold no money, to which recent refusals do not apply.
        Nor do they apply to requests with an Idempotency-Key, because a stored answer is free.
        """
        # The headers are decoded once, because every look-up in Starlette's `Headers` searches all
        # of them.
        headers = {
            name.decode("latin-1"): value.decode("latin-1")
            for name, value in reversed(scope["headers"])
        }
        tracing.begin(headers.get("traceparent"), self.services.ids)
        if scope["method"] != "POST":
            raise refuse_method(scope)
        keys = self.services.keys
        try:
            principal = await authenticate(keys, headers, METERED.roles, source=source_of(scope))
        except AccessError as refused:
            pace_refusal(refused, scope)
            target = f"POST {scope['path']}"
            await note_refusal(
                self.services.access_log(), keys, refused, target=target, scope=scope
            )
            raise
        if principal.kept_address is not None:
            await keys.note_address(principal, source_of(scope))
        gateway = await self.gateways.for_key(principal.key_id)
        if holds and IDEMPOTENCY_KEY not in headers:
            gateway.refusals.check(principal.key_id, gateway.clock)
        request_id = request_id_of(scope)
        admitting = partial(admit, gateway, principal, request_id)
        try:
            body = await read_body(
                receive,
                self.limits.body_bytes_max,
                coding=headers.get("content-encoding"),
                announced_bytes=headers.get("content-length"),
                free_bytes=LARGE_BYTES,
                admit=admitting,
            )
            is_large = is_large_body(body)
            if is_large:
                await admitting()
        except BaseException:
            gateway.admissions.end(principal, request_id)
            raise
        reach, reads = METERED.reach(principal), None
        if reach.everything:
            reads = RecordedReads(
                self.services.access_log(), actor_of(scope, principal), principal.owner
            )
            if gateway.files is not None:
                gateway = replace(gateway, files=RecordedFiles(gateway.files, reads))
        return Entered(
            headers=headers,
            principal=principal,
            request_id=request_id,
            reach=reach,
            gateway=gateway,
            body=body,
            is_large=is_large,
            reads=reads,
        )

    async def compute(self, entered: Entered, work: Callable[[], _Result]) -> _Result:
        """Return the result of work on the body, computed outside the event loop if the body is
        large.
        """
        side, workspace_id = entered.gateway.side, entered.principal.workspace_id
        return await side.run(workspace_id, work, is_large=entered.is_large)

    async def parse_read(self, entered: Entered, format_: IngressFormat) -> ParsedCall | None:
        """Parse a request together with its stored turns and compaction items.

        Returns None if the key stores no responses and the request contains no compaction.
        """
        principal, parse = entered.principal, format_.parse_read
        responses = None if principal.response_days is None else self.responses
        compacts = format_ is COMPACT or _COMPACTION in entered.body
        if parse is None or (responses is None and (self._seals is None or not compacts)):
            return None
        # Imported here because most deployments neither store nor compact responses.
        from tollgate.web.records.response_storage import parse_with_turns

        return await parse_with_turns(
            responses,
            entered.body,
            partial(parse(), headers=entered.headers),
            principal=principal,
            reach=entered.reach,
            reads=entered.reads,
            admit=partial(admit, entered.gateway, principal, entered.request_id),
            read_seal=partial(self._read_seal, principal.workspace_id),
            compacts=compacts,
            side=entered.gateway.side,
        )

    async def _read_seal(self, workspace_id: str) -> Seal | None:
        if self._seals is None:
            return None
        key = await self._seals.get(workspace_id)
        return _WORKSPACE_SEAL()(workspace_id=workspace_id, key=key)

    def leave(self, entered: Entered) -> None:
        """Stop counting a request as admitted; called when the request ends."""
        entered.gateway.admissions.end(entered.principal, entered.request_id)


def labels_of(entered: Entered, parsed: ParsedWork) -> Mapping[str, str]:
    """Return the labels that the caller sent about itself, if the catalog reads any, and the source
    of a playground's request.
    """
    sources = entered.gateway.planner.catalog.attribution
    source = {SOURCE_LABEL: PLAYGROUND} if entered.principal.role == PLAYGROUND else NO_HEADERS
    if not sources:
        return source
    # Imported here because most processes never read labels.
    from tollgate.web.generation.attribution import find_stated_labels

    return {**find_stated_labels(sources, entered.headers, parsed), **source}


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
