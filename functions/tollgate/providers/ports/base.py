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
from tollgate.core.request import Capability, GenerationRequest, Modality, Need, WorkKind
from tollgate.core.secret import SecretReference
from tollgate.core.work.base import InputWork, WorkResult
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.shared.emulation import NOT_WRAPPED, Wrapping

_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
# An event of a conversation's stream holds some words.
EVENT_BYTES_MAX: Final = 1024 * 1024


class Guardrail(Struct, frozen=True, kw_only=True):
    """A guardrail that the provider applies; a call that cannot reach it is refused."""

    id: str
    version: str


class NativeSearch(Struct, frozen=True, kw_only=True):
    """The search that providers of a format run by themselves, as far as a request states it."""

    # The lists of domains that it takes, one of them in a request.
    allows_domains: bool = False
    blocks_domains: bool = False
    beside_functions: bool = True
    """Whether a request with it may have functions too."""


class Target(Struct, frozen=True, kw_only=True):
    """One endpoint of one model at one provider."""

    provider: str
    """The provider's slug in the catalog."""
    model: str
    """The model's slug in the catalog."""
    # The provider's own name of the model.
    upstream_model: str
    dialect: Dialect = field(default_factory=Dialect)
    # The model's limit, to which the caller's is capped.
    output_tokens_max: int | None = None
    supports: frozenset[Capability] = frozenset()
    input: frozenset[Modality] = frozenset({"text"})
    """The kinds of content that the model takes."""
    files: frozenset[str] = frozenset()
    """The types of files that its format has room for, if the model reads PDF."""
    dimensions: int | None = None
    """The size of the model's own vectors, if it makes any."""
    takes: frozenset[Need] = frozenset({"conversation"})
    """What its format and its server have room for, beside one text."""
    guardrail: Guardrail | None = None
    """A codec whose format cannot apply it refuses the request."""
    # The place of a Google Cloud endpoint, None elsewhere.
    project: str | None = None
    location: str | None = None
    provider_name: str | None = None
    """The provider's name for people; None where the slug is all there is."""
    native_search: NativeSearch | None = None
    """The search that the provider runs by itself at a stated price; None if it runs none."""

    @property
    def endpoint_id(self) -> str:
        """The name of this endpoint in draws, records and cooldowns."""
        return f"{self.provider}/{self.upstream_model}"

    def reads_file(self, media_type: str) -> bool:
        """Return whether the model reads a file of this type itself."""
        return "pdf" in self.input and media_type in self.files

    @property
    def enforces_schemas(self) -> bool:
        """True if model and server enforce a JSON Schema."""
        able = "structured_output" in self.supports
        return able and self.dialect.output_format == "json_schema"

    def limited(self, output_tokens_max: int | None) -> int | None:
        """Return a caller's limit, capped to the model's; None if the caller set none."""
        if output_tokens_max is None or self.output_tokens_max is None:
            return output_tokens_max
        return min(output_tokens_max, self.output_tokens_max)


class Timeouts(Struct, frozen=True, kw_only=True):
    """Limits of one attempt, in seconds."""

    connect_s: float = 10.0
    first_token_s: float = 120.0
    idle_s: float = 120.0


class FormPart(Struct, frozen=True, kw_only=True):
    """One field of a form; with a file name it is a file."""

    name: str
    content: bytes
    file_name: str | None = None
    media_type: str | None = None


class WireRequest(Struct, frozen=True, kw_only=True):
    """A request in the provider's format, ready for a transport."""

    # Under the provider's base URL.
    path: str
    body: Mapping[str, JsonValue]
    headers: Mapping[str, str] = field(default_factory=dict)
    """Headers of the format; authorization is the transport's."""
    adapted: tuple[str, ...] = ()
    """The caller's parameters that the provider cannot take as they were set."""
    unreadable: tuple[str, ...] = ()
    """The parts of the conversation that the provider cannot read."""
    wrapping: Wrapping = NOT_WRAPPED
    """The emulation that the answer must be unwrapped from."""
    reply_bytes_max: int | None = None
    """The largest body of an answer that is not streamed; None if a stream is requested."""
    event_bytes_max: int = EVENT_BYTES_MAX
    """The largest event of a stream: one may hold a picture."""
    form: tuple[FormPart, ...] = ()
    """Sent as multipart/form-data in place of the body, if there are any."""
    is_raw: bool = False
    """Whether the stream is bytes of sound, a frame for each chunk, in place of events."""


class Frame(Struct, frozen=True, kw_only=True):
    """One event as it came off the wire: an SSE event, or a message of an event stream."""

    data: bytes
    event: str = "message"
    """The name of the SSE event, or the event type of the message."""
    exception: str | None = None
    """The exception type of a message that is an exception."""
    headers: Mapping[str, str] = _NO_HEADERS
    """The headers of the reply, by names in lower case, where the whole body is the frame."""


class UpstreamRefused(Exception):
    """The provider answered with an error status instead of a stream; a codec reads the body."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.headers = headers
        self.body = body


class Decoder(Protocol):
    """Turns the frames of one attempt into events; owns all state of that stream."""

    def feed(self, frame: Frame) -> Iterable[StreamEvent]:
        """Yield the events of one frame; UpstreamError if it is an error or cannot be read."""

    def end(self) -> Iterable[StreamEvent]:
        """Yield the events due when the stream closes; UpstreamError if it closed too early."""


class ReadDecoder(Decoder):
    """A decoder that takes less time for frames that came together."""

    @abstractmethod
    def feed_read(self, frames: Sequence[Frame]) -> Iterable[Grouped]:
        """Yield the events of the frames of one read, as `feed` does for each in turn."""


class Demultiplexer(Protocol):
    """Gives each choice of one stream the frames that its decoder is to see; owns their state."""

    def feed(self, frame: Frame) -> Iterable[tuple[int, Frame]]:
        """Yield the frames of each choice; UpstreamError for a choice that was not requested.

        Usage must reach one decoder only, or it would be counted once for each choice.
        """


class Codec(Struct, frozen=True, kw_only=True):
    """Translates between the middle and one provider format; does no I/O and keeps no state."""

    encode: Callable[[GenerationRequest, Target], WireRequest]
    """Encode a request; RequestError for what the provider can never take."""
    decoder: Callable[[Target], Decoder]
    """Make a new decoder, for one attempt."""
    error: Callable[[UpstreamRefused, Target], UpstreamError]
    """Translate an error reply into the public error that it means."""
    demultiplexer: Callable[[Target, int], Demultiplexer] | None = None
    """Make a new demultiplexer of so many choices, for one stream; None if the format holds one
    choice in a stream. It is used where the dialect has `native_choices`.
    """
    has_text_tools: bool = False
    """Whether the format has tools of free text. They are used where the dialect has `text_tools`.
    """


class TokenCounter(Struct, frozen=True, kw_only=True):
    """Counts the tokens of a prompt by a provider's own count, which generates nothing."""

    encode: Callable[[WireRequest, Target], WireRequest | None]
    """Turn the request that would generate into the one that counts; None if it cannot be counted.
    """
    fields: tuple[str, ...]
    """The field of the reply that has the count, by any of its names."""


_Work = TypeVar("_Work", bound=InputWork)


class BatchCodec(Struct, Generic[_Work], frozen=True, kw_only=True):
    """Translates work on inputs to one provider format and its result back; keeps no state."""

    split: Callable[[_Work, Target], Sequence[_Work]]
    """Split work into batches that the provider takes, in order."""
    encode: Callable[[_Work, Target], WireRequest]
    """Encode one batch; RequestError for what the provider can never take."""
    decode: Callable[[Frame, _Work, Target], WorkResult]
    """Decode the whole answer to one batch; UpstreamError if it is none."""
    error: Callable[[UpstreamRefused, Target], UpstreamError]
    """Translate an error reply into the public error that it means."""


class StreamedWorkCodec(Struct, Generic[_Work], frozen=True, kw_only=True):
    """Translates work on inputs to one provider format, whose result comes in pieces."""

    encode: Callable[[_Work, Target], WireRequest]
    """Encode the work; RequestError for what the provider can never take."""
    decoder: Callable[[_Work, Target], Decoder]
    """Make a new decoder, for one attempt."""
    error: Callable[[UpstreamRefused, Target], UpstreamError]
    """Translate an error reply into the public error that it means."""


Frames = AbstractAsyncContextManager[AsyncIterator[Sequence[Frame]]]


class ReadyRequest(Struct, frozen=True):
    """A request that is ready to leave, of which nothing was sent."""

    open: Callable[[], Frames]
    """Sends it, as the transport's own `open` does; at most once."""
    release: Callable[[], None]
    """Lets its connection serve another request, if it was not opened."""


class Transport(Protocol):
    """Carries wire requests of one provider row."""

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        """Authorize a request and connect, and send nothing; raise UpstreamError as `open` does."""

    def open(self, request: WireRequest, timeouts: Timeouts) -> Frames:
        """Send, and yield the frames as they come, together those that came together.

        Raises UpstreamRefused for an error status, UpstreamError for network failures and missing
        credentials. Of the timeouts it applies `connect_s`; the engine applies the others.
        Leaving the context closes the connection.
        """


# A key is sent as a bearer token or in a header of this name; with `google` it is the key of an
# account, for which Google issues access tokens.
Auth = Literal["bearer", "api-key", "x-api-key", "x-goog-api-key", "google"]


class FetchedMedia(Struct, frozen=True, kw_only=True):
    """The content behind a URL, and the type that its server claimed."""

    content: bytes
    claimed_type: str | None = None


class MediaFetcher(Protocol):
    """Fetches media by URL, from public addresses only."""

    async def fetch(
        self, url: str, *, field: str = "messages", bytes_max: int | None = None
    ) -> FetchedMedia:
        """Fetch the whole body; RequestError for a URL that must not or cannot be fetched.

        `field` is the one that has the URL; `bytes_max` replaces the fetcher's own limit.
        """


class ProviderRow(Struct, frozen=True, kw_only=True):
    """A provider as routing.yaml states it: a format, a transport, and where to reach it."""

    slug: str
    # The name of a format in `formats.WIRE_FORMATS`.
    codec: str
    transport: str
    # Without a trailing slash; on AWS transports it replaces the regional endpoint.
    base_url: str | None = None
    region: str | None = None
    key: SecretReference | None = None
    auth: Auth = "bearer"
    # The place in Google Cloud, for `auth: google`.
    project: str | None = None
    location: str | None = None
    dialect: Dialect = field(default_factory=Dialect)
    name: str | None = None
    """For people; None where the slug is all there is."""


class Provider(Struct, frozen=True):
    """The codecs and the transport of a row."""

    # None if the format has no generations.
    codec: Codec | None
    transport: Transport
    # Loaders of the codecs of other kinds of work: whole results, and results in pieces.
    batch_codecs: Mapping[WorkKind, Callable[[], BatchCodec[Any]]] = field(default_factory=dict)
    stream_codecs: Mapping[WorkKind, Callable[[], StreamedWorkCodec[Any]]] = field(
        default_factory=dict
    )
