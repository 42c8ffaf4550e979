"""The protocols that every client format implements, and the types that they exchange."""

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final, Protocol, Self

from msgspec import Struct, field
from typing_extensions import override

from tollgate.core.compaction import Compacted
from tollgate.core.content import FileReference, MediaUrl, Provenance

# msgspec decodes stored answers into this type, so it must be imported at run time.
from tollgate.core.documents.known_files import KnownFile
from tollgate.core.errors import GatewayError
from tollgate.core.events import StreamEvent, UnknownFields
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.limits import RateLimit
from tollgate.core.principal import UsageOn
from tollgate.core.records.generation import AttemptRecord, GenerationRecord
from tollgate.core.request import (
    GenerationRequest,
)
from tollgate.core.response import GenerationResponse
from tollgate.core.routing.endpoint_status import Lifecycle
from tollgate.core.work.base import Work

NO_HEADERS: Final[Mapping[str, str]] = {}
# The comment ends with one newline, because some clients read a blank line as the end of an event.
KEEP_ALIVE_COMMENT: Final = b": keep-alive\n"


class NamespacedName(Struct, frozen=True, kw_only=True):
    """A tool's name and the namespace (group of tools) in which the caller declared the tool."""

    namespace: str
    name: str


class AwaitedMedia(Struct, frozen=True, kw_only=True):
    """Media given by URL or file id that must be fetched before the cost can be estimated."""

    source: MediaUrl | FileReference
    field: str
    bytes_max: int
    complete: Callable[[bytes], Work]
    """Return the work with the fetched content; raise RequestError if its type is wrong."""


class Seal(Protocol):
    """Encrypts content that only the same workspace can read back."""

    def close(self, content: bytes, generation_id: str) -> str:
        """Return encrypted content; all calls for one generation must pass the same content."""

    def open(self, sealed: str) -> bytes | None:
        """Decrypt sealed content; return None if another workspace sealed it or it was changed."""


class RecordPacker(Protocol):
    """Packs a compacted conversation into a compaction item."""

    @property
    def kept(self) -> Sequence[JsonObject]:
        """The items of the conversation that compaction keeps unchanged."""

    def pack(self, compacted: Compacted, generation_id: str) -> Provenance:
        """Return the compaction item with the result of a generation."""


class RecordWindow(Protocol):
    """A conversation that is compacted before the answer if it has too many tokens."""

    @property
    def tokens_max(self) -> int:
        """The number of tokens above which the conversation is compacted."""

    @property
    def pauses(self) -> bool:
        """True if the compaction is the whole answer."""

    @property
    def left_to(self) -> str | None:
        """The signer whose readers compact by themselves; None if the gateway always compacts."""

    @property
    def packer(self) -> RecordPacker:
        """The packer of the compacted items."""

    def ask(self) -> GenerationRequest:
        """Return the request that asks for the compaction."""

    def resume(self, compacted: Compacted) -> GenerationRequest:
        """Return the request for the answer, with the result in place of the compacted items."""


class EditedContext(Struct, frozen=True, kw_only=True):
    """A request whose conversation was shortened, and the fields that report it in the reply."""

    request: GenerationRequest
    report: UnknownFields
    left_to: str
    """The signer whose readers carry out the same edits by themselves."""


# Returns the estimated number of tokens in a prompt.
MeasurePrompt = Callable[[GenerationRequest], int]
# Clears old parts of a conversation; returns None if nothing is cleared.
EditContext = Callable[[GenerationRequest, MeasurePrompt], EditedContext | None]


class ParsedWork(Struct, frozen=True, kw_only=True):
    """A parsed request of any kind: the work to do, and the options for the reply."""

    request: Work
    stream: bool = False
    media_type: str = ""
    """The media type of a reply that is neither JSON nor an event stream, such as `audio/mpeg`."""
    awaits: AwaitedMedia | None = None
    described: bytes = b""
    """A form as JSON, with the size and hash of each file in its place; empty if the
    body is JSON.
    """
    episode_id: str | None = None
    """The episode id from the request; if None, the renderer creates one."""
    ignored: tuple[str, ...] = ()
    """The names of request fields that have no effect."""
    tells_routing: bool = False
    """True if the reply must show how the request was routed (`Routed`)."""
    shows_provider: bool = False
    """True if an error must include the provider's own error body."""
    stored_input: tuple[JsonObject, ...] | None = None
    """The input to store with the answer, including earlier turns; None if nothing is stored."""
    client_metadata: Mapping[str, JsonValue] = field(default_factory=dict)
    """Metadata that a client sends about itself, which is not passed on to providers."""

    @property
    def unsent(self) -> tuple[str, ...]:
        """The names of the fields that have no effect if no provider gets the request."""
        return self.ignored


class ParsedCall(ParsedWork, frozen=True, kw_only=True):
    """A parsed request for a chat generation, with the options that its renderer reads."""

    request: GenerationRequest
    compacts: RecordPacker | None = None
    """Packs the answer if it is a compacted conversation."""
    window: RecordWindow | None = None
    """The rule for compacting the conversation before the answer; None for no compaction."""
    edits: EditContext | None = None
    """The edits that shorten the conversation before it may be compacted."""
    usage_on: UsageOn | None = None
    """The frame of a stream that contains the usage; None if the request does not set it."""
    background: bool = False
    """True if a worker answers later, and the caller gets only the queued response."""
    echoes: bool = False
    """True if each answer starts with the prompt."""
    repeated: Mapping[str, JsonValue] = field(default_factory=dict)
    """The request fields that the reply repeats, as they appear in the reply."""
    namespaces: Mapping[str, NamespacedName] = field(default_factory=dict)
    """The declared names of tools in namespaces, keyed by the flat names that are sent to
    providers.
    """

    @property
    @override
    def unsent(self) -> tuple[str, ...]:
        native = self.request.native
        return (*self.ignored, *(native.unknown_names if native is not None else ()))


class ServedBy(Struct, frozen=True, kw_only=True):
    """Facts about a reply that are known from the commit point on, such as model and provider."""

    generation_id: str
    created_s: int
    model: str
    provider: str | None
    """The slug of the provider that answered; None if every attempt failed."""
    provider_name: str | None = None
    """The provider's display name; None if it has none."""
    fallback_from: str | None = None
    """The model that was tried first; None if that is the model that answered."""
    fallback_depth: int = 0
    """The number of endpoints that failed before one answered."""
    adapted: tuple[str, ...] = ()
    """The request parameters that the provider does not support."""
    ending: Lifecycle | None = None
    """The announced retirement of the model at this provider; None if there is none."""
    bend: str | None = None
    """The rule that the request followed because little of a budget is left; None for others."""
    cache: str | None = None
    """`hit` with the answer's age, or `miss`; None if the cache was not asked."""
    read_files: tuple[KnownFile, ...] = ()
    """The documents that the gateway read for this answer."""


class Routed(Struct, frozen=True, kw_only=True):
    """The routing of a request: the matched rule, and every attempt so far."""

    requested: str
    catalog_sha: str
    route: str | None = None
    rule: int | None = None
    attempts: tuple[AttemptRecord, ...] = ()
    reused: str | None = None
    """The generation whose answer was reused; None for a new answer."""

    @classmethod
    def of(cls, record: GenerationRecord) -> Self:
        """Return the routing that a generation's record describes."""
        return cls(
            requested=record.trace.requested_model,
            catalog_sha=record.catalog_sha,
            route=record.trace.route,
            rule=record.trace.rule,
            attempts=record.attempts,
            reused=record.reused.generation_id if record.reused else None,
        )


class Renderer(Protocol):
    """Renders one reply in the client's format."""

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        """Render one event of a choice; return no bytes if nothing has to be sent."""

    def close(self, record: GenerationRecord) -> bytes:
        """Render the last frames of a complete stream: usage, then the end marker."""

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """Render the last frames of a stream that failed after the commit point."""

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """Render the body of a non-streamed reply; `responses` has one entry for each choice."""


class ErrorReply(Struct, frozen=True, kw_only=True):
    """An HTTP reply that reports an error."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Ingress(Protocol):
    """Parses the requests of one client format, and renders its replies, headers and errors."""

    keep_alive: bytes
    """The bytes that keep an idle stream open between two events."""
    early_keep_alive: bytes
    """The bytes that keep a stream open before its first event."""

    def parse(self, body: bytes, headers: Mapping[str, str] = NO_HEADERS) -> ParsedWork:
        """Parse a request with lower-case headers; raise RequestError with the field at fault."""

    def renderer(self, call: Any, served: ServedBy, *, credits_per_usd: Decimal) -> Renderer:
        """Return a new renderer for the reply to `call`, which this format's `parse` returned."""

    def limit_headers(
        self, requests: RateLimit | None, tokens: RateLimit | None, *, request_id: str
    ) -> dict[str, str]:
        """Return this format's headers for a key's limits and the remaining amounts.

        The headers give the seconds until each limit resets, counted from the time in `request_id`.
        """

    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        """Render an error in this format's envelope, with the routing unless `routed` is None."""
