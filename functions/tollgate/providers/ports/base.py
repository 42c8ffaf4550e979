"""The two halves of a provider: a pure codec, and a transport that does the I/O."""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from msgspec import Struct, field

from tollgate.core.errors import UpstreamError
from tollgate.core.events import Grouped, StreamEvent
from tollgate.core.json_value import JsonValue
from tollgate.core.request import Capability, GenerationRequest, Modality, Need
from tollgate.core.secret import SecretReference
from tollgate.core.work.base import InputWork, WorkResult
from tollgate.core.work.kinds import WorkKind
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.shared.emulation import NOT_WRAPPED, Wrapping

_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
# One event of a chat stream holds a few words.
EVENT_BYTES_MAX: Final = 1024 * 1024


class Guardrail(Struct, frozen=True, kw_only=True):
    """A guardrail that the provider applies; a request that would bypass it is refused."""

    id: str
    version: str


class NativeSearch(Struct, frozen=True, kw_only=True):
    """The web search that providers of a format run themselves, and the options that it has."""

    allows_domains: bool = False
    """True if a request may list the only domains to search."""
    blocks_domains: bool = False
    """True if a request may list domains to leave out; a request has one of the two lists."""
    beside_functions: bool = True
    """True if a request with this search may offer functions too."""


class Target(Struct, frozen=True, kw_only=True):
    """One endpoint of one model at one provider."""

    provider: str
    """The provider's slug in the catalog."""
    model: str
    """The model's slug in the catalog."""
    upstream_model: str
    """The provider's own name for the model."""
    dialect: Dialect = field(default_factory=Dialect)
    output_tokens_max: int | None = None
    """The model's output limit; a larger limit of the caller is lowered to this value."""
    supports: frozenset[Capability] = frozenset()
    input: frozenset[Modality] = frozenset({"text"})
    """The modalities that the model reads."""
    files: frozenset[str] = frozenset()
    """The media types of files that the format can carry, if the model reads PDF."""
    dimensions: int | None = None
    """The dimensions of the model's vectors by default; None if the model makes no vectors."""
    takes: frozenset[Need] = frozenset({"conversation"})
    """The needs that the format and its server can meet besides a single text."""
    guardrail: Guardrail | None = None
    """The guardrail to apply; a codec whose format cannot apply one refuses the request."""
    project: str | None = None
    """The Google Cloud project; None for other providers."""
    location: str | None = None
    """The Google Cloud location; None for other providers."""
    provider_name: str | None = None
    """The provider's display name; None if there is only the slug."""
    native_search: NativeSearch | None = None
    """The search that the provider runs itself at a stated price; None if there is none."""

    @property
    def endpoint_id(self) -> str:
        """The id of this endpoint in draws, records and cooldowns: `provider/upstream_model`."""
        return f"{self.provider}/{self.upstream_model}"

    def reads_file(self, media_type: str) -> bool:
        """Return whether the model reads a file of this type itself."""
        return "pdf" in self.input and media_type in self.files

    @property
    def enforces_schemas(self) -> bool:
        """True if both the model and the server enforce a JSON Schema."""
        able = "structured_output" in self.supports
        return able and self.dialect.output_format == "json_schema"

    def limited(self, output_tokens_max: int | None) -> int | None:
        """Return a caller's output limit, capped to the model's; None if the caller set none."""
        if output_tokens_max is None or self.output_tokens_max is None:
            return output_tokens_max
        return min(output_tokens_max, self.output_tokens_max)


class Timeouts(Struct, frozen=True, kw_only=True):
    """Limits of one attempt, in seconds."""

    connect_s: float = 10.0
    first_token_s: float = 120.0
    idle_s: float = 120.0


class FormPart(Struct, frozen=True, kw_only=True):
    """One field of a multipart form; a field with a file name is a file."""

    name: str
    content: bytes
    file_name: str | None = None
    media_type: str | None = None


class WireRequest(Struct, frozen=True, kw_only=True):
    """A request in the provider's format, ready for a transport."""

    path: str
    """The path, relative to the provider's base URL."""
    body: Mapping[str, JsonValue]
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the format; the transport adds the authorization."""
    adapted: tuple[str, ...] = ()
    """The caller's parameters that were changed or left out, since the provider refuses them."""
    unreadable: tuple[str, ...] = ()
    """The parts of the conversation that were left out, since the provider cannot read them."""
    wrapping: Wrapping = NOT_WRAPPED
    """The emulation that has to be undone in the answer."""
    reply_bytes_max: int | None = None
    """The largest body of an answer that is not streamed, in bytes; None for a stream."""
    event_bytes_max: int = EVENT_BYTES_MAX
    """The largest event of a stream, in bytes; an event may contain an image."""
    form: tuple[FormPart, ...] = ()
    """Fields sent as multipart/form-data in place of `body`, if there are any."""
    is_raw: bool = False
    """True if the stream is audio bytes, one frame for each chunk, and not events."""


class Frame(Struct, frozen=True, kw_only=True):
    """One event as received: an SSE event, or a message of an AWS event stream."""

    data: bytes
    event: str = "message"
    """The name of the SSE event, or the event type of the message."""
    exception: str | None = None
    """The exception type, if the message is an exception."""
    headers: Mapping[str, str] = _NO_HEADERS
    """The headers of the reply, with lower-case names; set if the whole body is one frame."""


class UpstreamRefused(Exception):
    """The provider answered with an error status and not with a stream; a codec reads the body."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.headers = headers
        self.body = body


class Decoder(Protocol):
    """Turns the frames of one attempt into events, and owns all state of that stream."""

    def feed(self, frame: Frame) -> Iterable[StreamEvent]:
        """Yield the events of one frame; raise UpstreamError for an error or unreadable data."""

    def end(self) -> Iterable[StreamEvent]:
        """Yield the events due when the stream closes; raise UpstreamError if it closed early."""


class ReadDecoder(Decoder):
    """A decoder that handles several frames of one read faster than one by one."""

    @abstractmethod
    def feed_read(self, frames: Sequence[Frame]) -> Iterable[Grouped]:
        """Yield the events of all frames of one read, as `feed` would for each frame in turn."""


class Demultiplexer(Protocol):
    """Splits one stream into a stream of frames for each choice, and owns their state."""

    def feed(self, frame: Frame) -> Iterable[tuple[int, Frame]]:
        """Yield pairs of choice and frame; raise UpstreamError for a choice that was not requested.

        Usage must reach one decoder only, or it would be counted once for each choice.
        """


class Codec(Struct, frozen=True, kw_only=True):
    """Translates between the gateway's shapes and one provider format; has no I/O and no state."""

    encode: Callable[[GenerationRequest, Target], WireRequest]
    """Encode a request; raise RequestError for content that the provider can never accept."""
    decoder: Callable[[Target], Decoder]
    """Make a new decoder for one attempt."""
    error: Callable[[UpstreamRefused, Target], UpstreamError]
    """Translate an error reply into the public error."""
    demultiplexer: Callable[[Target, int], Demultiplexer] | None = None
    """Make a new demultiplexer for one stream with this many choices; None if a stream of the
    format has only one choice. Used if the dialect has `native_choices`.
    """
    has_text_tools: bool = False
    """True if the format has tools that take free text. Used if the dialect has `text_tools`."""


class TokenCounter(Struct, frozen=True, kw_only=True):
    """Counts the tokens of a prompt with the provider's own endpoint, which generates nothing."""

    encode: Callable[[WireRequest, Target], WireRequest | None]
    """Turn a request for an answer into a request for its token count; None if impossible."""
    fields: tuple[str, ...]
    """The names under which the reply may have the count."""


_Work = TypeVar("_Work", bound=InputWork)


class BatchCodec(Struct, Generic[_Work], frozen=True, kw_only=True):
    """Translates work on inputs into one provider format, and the result back; has no state."""

    split: Callable[[_Work, Target], Sequence[_Work]]
    """Split work into batches of a size that the provider accepts, in order."""
    encode: Callable[[_Work, Target], WireRequest]
    """Encode one batch; raise RequestError if no retry could make the provider accept the batch."""
    decode: Callable[[Frame, _Work, Target], WorkResult]
    """Decode the whole answer to one batch; raise UpstreamError if the frame is malformed."""
    error: Callable[[UpstreamRefused, Target], UpstreamError]
    """Translate an error reply into the public error."""


class StreamedWorkCodec(Struct, Generic[_Work], frozen=True, kw_only=True):
    """Translates work on inputs into one provider format, whose result arrives in pieces."""

    encode: Callable[[_Work, Target], WireRequest]
    """Encode the work; raise RequestError if no retry could make the provider accept the work."""
    decoder: Callable[[_Work, Target], Decoder]
    """Make a new decoder for one attempt."""
    error: Callable[[UpstreamRefused, Target], UpstreamError]
    """Translate an error reply into the public error."""


Frames = AbstractAsyncContextManager[AsyncIterator[Sequence[Frame]]]


class ReadyRequest(Struct, frozen=True):
    """A request that is ready to be sent; no byte of the request has left yet."""

    open: Callable[[], Frames]
    """Send the request, as the transport's `open` does; to be called at most once."""
    release: Callable[[], None]
    """Return the reserved connection to the pool, if `open` was never called."""


class Transport(Protocol):
    """Sends the wire requests of one provider row."""

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        """Authorize a request and connect, without sending; raise UpstreamError as `open` does."""

    def open(self, request: WireRequest, timeouts: Timeouts) -> Frames:
        """Send a request, and yield the frames of each read together.

        Raises UpstreamRefused for an error status, and UpstreamError for network failures and
        missing credentials. `connect_s` is the only timeout applied here; the engine applies the
        others. Leaving the context closes the connection.
        """


# How a row's key is sent: as a bearer token, or in the header of this name. With `google` the key
# belongs to an account for which Google issues access tokens.
Auth = Literal["bearer", "api-key", "x-api-key", "x-goog-api-key", "google"]


class FetchedMedia(Struct, frozen=True, kw_only=True):
    """The content of a URL, and the media type that its server stated."""

    content: bytes
    claimed_type: str | None = None


class MediaFetcher(Protocol):
    """Fetches media by URL, only from public addresses."""

    async def fetch(
        self, url: str, *, field: str = "messages", bytes_max: int | None = None
    ) -> FetchedMedia:
        """Fetch the whole body; raise RequestError if the URL is forbidden or cannot be fetched.

        `field` is the request's field that has the URL; `bytes_max` overrides the fetcher's limit.
        """


class ProviderRow(Struct, frozen=True, kw_only=True):
    """A provider as stated in routing.yaml: a format, a transport, and an address."""

    slug: str
    codec: str
    """The name of a format in `formats.WIRE_FORMATS`."""
    transport: str
    base_url: str | None = None
    """The base URL without a trailing slash; on AWS transports it replaces the regional endpoint.
    """
    region: str | None = None
    key: SecretReference | None = None
    auth: Auth = "bearer"
    project: str | None = None
    """The Google Cloud project, for `auth: google`."""
    location: str | None = None
    """The Google Cloud location, for `auth: google`."""
    dialect: Dialect = field(default_factory=Dialect)
    name: str | None = None
    """The display name; None if there is only the slug."""


class Provider(Struct, frozen=True):
    """The codecs and the transport of a row."""

    codec: Codec | None
    """The codec for chat; None if the format has no chat."""
    transport: Transport
    batch_codecs: Mapping[WorkKind, Callable[[], BatchCodec[Any]]] = field(default_factory=dict)
    """Loaders of the codecs for other kinds of work, whose results come whole."""
    stream_codecs: Mapping[WorkKind, Callable[[], StreamedWorkCodec[Any]]] = field(
        default_factory=dict
    )
    """Loaders of the codecs for other kinds of work, whose results come in pieces."""
