"""The protocols of a client format; those of providers are in `providers.ports.base`."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Protocol, Self

from msgspec import Struct, field

from tollgate.core.content import FileReference, MediaUrl

# Imported at run time, because msgspec decodes stored answers into this type.
from tollgate.core.documents.known_files import KnownFile
from tollgate.core.errors import GatewayError
from tollgate.core.events import StreamEvent
from tollgate.core.json_value import JsonValue
from tollgate.core.limits import RateLimit
from tollgate.core.records.generation import AttemptRecord, GenerationRecord
from tollgate.core.request import GenerationRequest, JsonObject
from tollgate.core.response import GenerationResponse
from tollgate.core.routing.endpoint_status import Lifecycle
from tollgate.core.work.base import Work

NO_HEADERS: Final[Mapping[str, str]] = {}
# The comment ends with one newline, because some clients take a blank line for the end of an event.
KEEP_ALIVE_COMMENT: Final = b": keep-alive\n"


class NamespacedName(Struct, frozen=True, kw_only=True):
    """The name of a tool within a group of tools, as the caller declared it."""

    namespace: str
    name: str


class AwaitedMedia(Struct, frozen=True, kw_only=True):
    """Media behind a URL or in a file that must be fetched before the work can be sized."""

    source: MediaUrl | FileReference
    field: str
    bytes_max: int
    complete: Callable[[bytes], Work]
    """Return the work with the content; raise RequestError if the content is of another kind."""


class ParsedWork(Struct, frozen=True, kw_only=True):
    """A parsed request of any kind: the work to do, and the options of the reply."""

    request: Work
    stream: bool = False
    media_type: str = ""
    """The media type of a reply that is neither JSON nor events, such as `audio/mpeg`."""
    awaits: AwaitedMedia | None = None
    described: bytes = b""
    """The request as JSON if its body is a form, with size and hash in place of each file."""
    episode_id: str | None = None
    """The caller's own episode id; with None the renderer creates one."""
    ignored: tuple[str, ...] = ()
    """The names of the request's fields that have no effect."""
    tells_routing: bool = False
    """True if the caller requested the routing (`Routed`) in the reply."""
    stored_input: tuple[JsonObject, ...] | None = None
    """The input to store with the answer, earlier turns included; with None nothing is stored."""
    client_metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    """Facts that a client states about itself; they are not sent to providers."""


class ParsedCall(ParsedWork, frozen=True, kw_only=True):
    """A parsed request for a generation, with the options that the format's renderer reads."""

    request: GenerationRequest
    usage_on_finish: bool = False
    """True if the finish frame of a stream has the usage, instead of a frame after the finish."""
    echoes: bool = False
    """True if the renderer repeats the prompt before each answer."""
    repeated: Mapping[str, JsonValue] = field(default_factory=dict)
    """The fields of the request that the reply repeats, in the form that the reply has."""
    namespaces: Mapping[str, NamespacedName] = field(default_factory=dict)
    """The caller's names of tools in namespaces, by the flat names that providers get."""


class ServedBy(Struct, frozen=True, kw_only=True):
    """The model and provider of a reply, known from the commit point on."""

    generation_id: str
    created_s: int
    model: str
    provider: str | None
    """The slug of the provider that served; None if no attempt served."""
    provider_name: str | None = None
    """The provider's display name; None if the provider has only a slug."""
    fallback_from: str | None = None
    """The model that was tried first, if a different model serves."""
    fallback_depth: int = 0
    """The number of endpoints that were tried before the one that serves."""
    adapted: tuple[str, ...] = ()
    """The caller's parameters that the provider does not support."""
    ending: Lifecycle | None = None
    """The announced end of the model at this provider; None if no end is announced."""
    read_files: tuple[KnownFile, ...] = ()
    """The documents that were read for the answer."""


class Routed(Struct, frozen=True, kw_only=True):
    """The routing to show to callers who request it: the rule, and every attempt so far."""

    requested: str
    catalog_sha: str
    route: str | None = None
    rule: int | None = None
    attempts: tuple[AttemptRecord, ...] = ()

    @classmethod
    def of(cls, record: GenerationRecord) -> Self:
        """Return the routing in the record of a generation."""
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
        """Render one event of a choice; return no bytes for an event without frames."""

    def close(self, record: GenerationRecord) -> bytes:
        """Render the last frames of a finished stream: usage, then the end mark."""

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Render the last frames of a stream that failed after the commit point."""

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body of a reply that is not streamed; `responses` has one for each choice."""


class ErrorReply(Struct, frozen=True, kw_only=True):
    """An error as an HTTP reply."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Ingress(Protocol):
    """Parses the requests of one client format, and renders its replies, headers and errors."""

    keep_alive: bytes
    """The bytes, sent between two events, with which a quiet stream shows that it is alive."""
    early_keep_alive: bytes
    """The bytes that are sent for the same purpose before the first event."""

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        """Parse a request; raise RequestError with the field at fault.

        The names of `headers` are in lower case.
        """

    def renderer(self, call: Any, served: ServedBy, *, credits_per_usd: Decimal) -> Renderer:
        """Return a new renderer for one reply to `call`, a result of this format's `parse`."""

    def limit_headers(
        self, requests: RateLimit | None, tokens: RateLimit | None, *, request_id: str
    ) -> dict[str, str]:
        """Return the headers, in this format's names, that state how much of its limits a key has.

        `request_id` contains the time from which the limits count their seconds until a reset.
        """

    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        """Render an error in this format's envelope, with the routing if `routed` is not None."""
