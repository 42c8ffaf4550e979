"""The protocols of a client format; the counterpart of `providers.ports.base`."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Protocol, Self

from msgspec import Struct, field

from tollgate.core.content import FileReference, MediaUrl

# Not for the checker alone: a kept answer is decoded into this type.
from tollgate.core.documents.known_files import KnownFile
from tollgate.core.errors import GatewayError
from tollgate.core.events import StreamEvent
from tollgate.core.json_value import JsonValue
from tollgate.core.limits import RateLimit
from tollgate.core.records.generation import AttemptRecord, GenerationRecord
from tollgate.core.request import GenerationRequest, JsonObject
from tollgate.core.response import GenerationResponse
from tollgate.core.routing.lifecycle import Lifecycle
from tollgate.core.work.base import Work

NO_HEADERS: Final[Mapping[str, str]] = {}
# One newline only: for some clients a blank line after a comment ends an event.
KEEP_ALIVE_COMMENT: Final = b": keep-alive\n"


class NamespacedName(Struct, frozen=True, kw_only=True):
    """The name of a tool within a group of tools, as the caller declared it."""

    namespace: str
    name: str


class AwaitedMedia(Struct, frozen=True, kw_only=True):
    """Media behind a URL or in a file, without which the size of the work is not known."""

    source: MediaUrl | FileReference
    field: str
    bytes_max: int
    complete: Callable[[bytes], Work]
    """Return the work with the content; RequestError if it is of another kind."""


class ParsedWork(Struct, frozen=True, kw_only=True):
    """A parsed request of any kind: the work, and the form of the reply."""

    request: Work
    stream: bool = False
    media_type: str = ""
    """The type of a reply that is neither JSON nor events, such as `audio/mpeg`."""
    awaits: AwaitedMedia | None = None
    described: bytes = b""
    """The request as JSON, where its body is none: of a file its size and hash."""
    episode_id: str | None = None
    """The caller's own episode; None lets the renderer make one."""
    ignored: tuple[str, ...] = ()
    """The names of fields that have no effect."""
    tells_routing: bool = False
    """True if the caller requested a `Routed` in the reply."""
    stored_input: tuple[JsonObject, ...] | None = None
    """The input to store with the answer, earlier turns included; None stores neither."""
    client_metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    """The facts that a client states about itself, which no provider gets."""


class ParsedCall(ParsedWork, frozen=True, kw_only=True):
    """A parsed request for a generation, and what its format's renderer reads of it."""

    request: GenerationRequest
    usage_on_finish: bool = False
    """True if the finish frame of a stream carries the usage."""
    echoes: bool = False
    """True if the renderer puts its prompt before each answer."""
    repeated: Mapping[str, JsonValue] = field(default_factory=dict)
    """The fields of the request that the reply repeats, as the reply has them."""
    namespaces: Mapping[str, NamespacedName] = field(default_factory=dict)
    """The caller's names of the tools within namespaces, by the names that they have here."""


class ServedBy(Struct, frozen=True, kw_only=True):
    """The model and provider behind a reply, known from the commit point on."""

    generation_id: str
    created_s: int
    model: str
    provider: str | None
    """None if no attempt served."""
    provider_name: str | None = None
    """The provider's name for people; None if it has none beside its slug."""
    fallback_from: str | None = None
    """The model that was tried first, if another one serves."""
    fallback_depth: int = 0
    """The number of endpoints that were tried before."""
    adapted: tuple[str, ...] = ()
    """The caller's parameters that the provider does not support."""
    ending: Lifecycle | None = None
    """The end of the model there, if it is announced."""
    read_files: tuple[KnownFile, ...] = ()
    """The documents that were read for it."""


class Routed(Struct, frozen=True, kw_only=True):
    """The routing of a request, for callers who request it: its rule, and every attempt so far."""

    requested: str
    catalog_sha: str
    route: str | None = None
    rule: int | None = None
    attempts: tuple[AttemptRecord, ...] = ()

    @classmethod
    def of(cls, record: GenerationRecord) -> Self:
        """Return the routing that the record of a generation holds."""
        return cls(
            requested=record.trace.requested_model,
            catalog_sha=record.catalog_sha,
            route=record.trace.route,
            rule=record.trace.rule,
            attempts=record.attempts,
        )


class Renderer(Protocol):
    """Writes one reply in the client's format."""

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Render one event of a choice; an event without frames gives no bytes."""

    def close(self, record: GenerationRecord) -> bytes:
        """Render the last frames of a finished stream: usage, then the end mark."""

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Render the frames that end a stream which failed after the commit point."""

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body of a reply that is not streamed, from a response for each choice."""


class ErrorReply(Struct, frozen=True, kw_only=True):
    """An error as HTTP: status, headers that belong to it, body."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Ingress(Protocol):
    """Parses requests of one client format, and makes what its replies consist of."""

    keep_alive: bytes
    """The bytes that a client of this format takes for a sign of life, between two events."""
    early_keep_alive: bytes
    """The bytes in its place before the first event."""

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        """Parse a request; raise RequestError with the field at fault.

        The names of `headers` are in lower case.
        """

    def renderer(self, call: Any, served: ServedBy, *, credits_per_usd: Decimal) -> Renderer:
        """Return a new renderer for one reply to `call`, which this format has parsed."""

    def limit_headers(
        self, requests: RateLimit | None, tokens: RateLimit | None, *, request_id: str
    ) -> dict[str, str]:
        """Return the headers, in this format's names, that state what a key has left.

        The second of the limits is the one in which `request_id` was made.
        """

    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        """Render an error in this format's envelope; `routed` is shown if it is given."""
