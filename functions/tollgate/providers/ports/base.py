"""Protocols for the two halves of a provider: a codec, which does no I/O, and a transport, which
does the I/O.
"""

from abc import abstractmethod
from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from types import MappingProxyType
from typing import Any, Final, Generic, Literal, Protocol, TypeVar

from msgspec import Struct, field

from tollgate.core.buffer_budget import Buffered
from tollgate.core.errors import UpstreamError
from tollgate.core.events import Grouped, StreamEvent
from tollgate.core.json_value import JsonValue
from tollgate.core.prompt_policy import UNSTATED, PromptUse
from tollgate.core.request import Capability, GenerationRequest, Modality, Need
from tollgate.core.secret import SecretReference
from tollgate.core.work.base import InputWork, WorkResult
from tollgate.core.work.kinds import WorkKind
from tollgate.providers.ports.background import ProviderBackground
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.provider_batches import BatchTerms, ProviderBatches
from tollgate.providers.ports.provider_jobs import JobCodec
from tollgate.providers.shared.emulation import NOT_WRAPPED, Wrapping

_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})
# Ample, because an event of a chat stream usually has only a few words.
EVENT_BYTES_MAX: Final = 1024 * 1024


class Guardrail(Struct, frozen=True, kw_only=True):
    """A guardrail that the provider applies; the gateway refuses a request that would bypass it."""

    id: str
    version: str


class NativeSearch(Struct, frozen=True, kw_only=True):
    """The options of the web search that providers of a format run themselves."""

    allows_domains: bool = False
    """True if a request may limit the search to a list of domains."""
    blocks_domains: bool = False
    """True if a request may exclude domains from the search (as an alternative to limiting the
    search to some domains).
    """
    beside_functions: bool = True
    """True if a request may offer both this search and functions."""


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
    """The model's output limit, which caps the caller's limit."""
    supports: frozenset[Capability] = frozenset()
    input: frozenset[Modality] = frozenset({"text"})
    """The modalities that the model reads."""
    files: frozenset[str] = frozenset()
    """The media types of files that the format can carry, if the model reads PDF."""
    dimensions: int | None = None
    """The default number of dimensions in the model's vectors; None for other models."""
    takes: frozenset[Need] = frozenset({"conversation"})
    """The needs beyond a single text that both the format and its server can satisfy."""
    guardrail: Guardrail | None = None
    """The guardrail to apply; a codec without support for guardrails refuses the request."""
    project: str | None = None
    """The Google Cloud project; None for other providers."""
    location: str | None = None
    """The Google Cloud location; None for other providers."""
    provider_name: str | None = None
    """The provider's display name; None for a provider with only a slug."""
    native_search: NativeSearch | None = None
    """The web search that the provider runs itself; None if the provider has no search or the
    search has no price.
    """

    @property
    def endpoint_id(self) -> str:
        """The id of this endpoint in routing, records and cooldowns: `provider/upstream_model`."""
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
        """Return the caller's output limit or, without one, the dialect's, capped at the model's;
        None if neither is set.
        """
        if output_tokens_max is None:
            output_tokens_max = self.dialect.output_limit_default
        if output_tokens_max is None or self.output_tokens_max is None:
            return output_tokens_max
        return min(output_tokens_max, self.output_tokens_max)


class Timeouts(Struct, frozen=True, kw_only=True):
    """Limits of one attempt, in seconds."""

    connect_s: float = 10.0
    first_token_s: float = 120.0
    idle_s: float = 120.0


class FormPart(Struct, frozen=True, kw_only=True):
    """A field of a multipart form; a field with a file name is a file."""

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
    """Headers that the format requires; the transport adds the authorization."""
    adapted: tuple[str, ...] = ()
    """The names of the caller's parameters that were changed or left out for this provider."""
    unreadable: tuple[str, ...] = ()
    """The names of parts that were left out, because the provider cannot read them."""
    wrapping: Wrapping = NOT_WRAPPED
    """The emulation that must be undone in the answer."""
    reply_bytes_max: int | None = None
    """The maximum size of an answer that is not streamed, in bytes; None for a stream."""
    event_bytes_max: int = EVENT_BYTES_MAX
    """The maximum size of an event in a stream, in bytes; an event may contain an image."""
    form: tuple[FormPart, ...] = ()
    """Fields to send as multipart/form-data; if there are any, `body` is not sent."""
    is_raw: bool = False
    """True for a stream of audio bytes, whose frames are the chunks as received."""


class Frame(Struct, frozen=True, kw_only=True):
    """One event as received: an SSE event, or a message of an AWS event stream."""

    data: bytes
    event: str = "message"
    """The name of the SSE event, or the event type of the message."""
    exception: str | None = None
    """The exception type of a message that is an exception."""
    headers: Mapping[str, str] = _NO_HEADERS
    """The headers of the reply, with lower-case names, if the whole body is one frame."""


class UpstreamRefused(Exception):
    """The provider answered with an error status; the codec turns the body into a public error."""

    def __init__(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
        super().__init__(f"HTTP {status}")
        self.status = status
        self.headers = headers
        self.body = body


class Decoder(Protocol):
    """Turns the frames of one attempt into events, and holds all state of that stream."""

    def feed(self, frame: Frame) -> Iterable[StreamEvent]:
        """Yield the events of one frame; raise UpstreamError for an error or unreadable data."""

    def end(self) -> Iterable[StreamEvent]:
        """Yield the last events of a closed stream; raise UpstreamError if it is incomplete."""


class ReadDecoder(Decoder):
    """A decoder that handles the frames of one read together, which is faster."""

    @abstractmethod
    def feed_read(self, frames: Sequence[Frame]) -> Iterable[Grouped]:
        """Yield the same events as `feed` for each of the frames in turn."""


class Demultiplexer(Protocol):
    """Splits one stream into a stream for each choice, and holds all state for the split."""

    def feed(self, frame: Frame) -> Iterable[tuple[int, Frame]]:
        """Yield pairs of choice index and frame; raise UpstreamError for an unrequested choice.

        Usage must reach only one decoder, or it would be counted once for each choice.
        """


class Codec(Struct, frozen=True, kw_only=True):
    """Translates between the gateway's types and one wire format, without I/O and state."""

    encode: Callable[[GenerationRequest, Target], WireRequest]
    """Encode a request; raise RequestError for content that the provider can never accept."""
    decoder: Callable[[Target], Decoder]
    """Make a new decoder for one attempt."""
    error: Callable[[UpstreamRefused, Target], UpstreamError]
    """Translate an error reply into the public error."""
    demultiplexer: Callable[[Target, int], Demultiplexer] | None = None
    """Make a new demultiplexer for a stream with this number of choices; None if the format has
    only one choice per stream. Used if the dialect has `native_choices`.
    """
    has_text_tools: bool = False
    """True if the format has tools that take free text. Used if the dialect has `text_tools`."""


class TokenCounter(Struct, frozen=True, kw_only=True):
    """Counts the tokens of a prompt with the provider's own endpoint, which generates nothing."""

    encode: Callable[[WireRequest, Target], WireRequest | None]
    """Turns a request for an answer into a request that counts the prompt's tokens; None if that is
    impossible.
    """
    fields: tuple[str, ...]
    """The fields of the reply that may contain the count."""


_Work = TypeVar("_Work", bound=InputWork)


class BatchCodec(Struct, Generic[_Work], frozen=True, kw_only=True):
    """Encodes work other than chat in one wire format, and decodes whole results."""

    split: Callable[[_Work, Target], Sequence[_Work]]
    """Split work into batches that the provider accepts, in the order of the inputs."""
    encode: Callable[[_Work, Target], WireRequest]
    """Encode one batch; raise RequestError if the provider can never accept the batch."""
    decode: Callable[[Frame, _Work, Target], WorkResult]
    """Decode the whole answer to one batch; raise UpstreamError if the frame is malformed."""
    error: Callable[[UpstreamRefused, Target], UpstreamError]
    """Translate an error reply into the public error."""


class StreamedWorkCodec(Struct, Generic[_Work], frozen=True, kw_only=True):
    """Encodes work other than chat in one wire format, and decodes streamed results."""

    encode: Callable[[_Work, Target], WireRequest]
    """Encode the work; raise RequestError if the provider can never accept the work."""
    decoder: Callable[[_Work, Target], Decoder]
    """Make a new decoder for one attempt."""
    error: Callable[[UpstreamRefused, Target], UpstreamError]
    """Translate an error reply into the public error."""


Frames = AbstractAsyncContextManager[AsyncIterator[Sequence[Frame]]]


class ReadyRequest(Struct, frozen=True):
    """A request that is ready to send; no byte of it has been sent yet."""

    open: Callable[[], Frames]
    """Send the request as `Transport.open` does; may be called once."""
    release: Callable[[], None]
    """Return the reserved connection to the pool; this is called instead of `open`."""


class Transport(Protocol):
    """Sends the requests for one provider row."""

    async def make_ready(self, request: WireRequest, timeouts: Timeouts) -> ReadyRequest:
        """Authorize a request and connect without sending; raise the same errors as `open`."""

    def open(self, request: WireRequest, timeouts: Timeouts) -> Frames:
        """Send a request, and yield the frames of each read together.

        Raises UpstreamRefused for an error status, and UpstreamError for network failures and
        missing credentials. The transport applies only the timeout `connect_s`; the engine applies
        the others. Leaving the context closes the connection.
        """


class JobCalls(Protocol):
    """Calls for the jobs of one provider row; each raises UpstreamRefused or UpstreamError."""

    async def submit(self, request: WireRequest) -> bytes:
        """Send a request once, and return the reply.

        Only MissingCredentials, and a refusal with a status below 500, prove that nothing runs.
        """

    async def get(self, path: str, *, bytes_max: int) -> bytes:
        """Return the body at a path of the provider, of at most `bytes_max` bytes."""


# The header that carries a row's key: `authorization` with a bearer token, or a header with this
# name. With `google`, the key belongs to an account for which Google issues access tokens.
Auth = Literal[
    "bearer", "api-key", "x-api-key", "x-goog-api-key", "google", "bedrock", "bedrock-mantle"
]
# The services for which requests are signed with the gateway's AWS credentials. Their hosts:
# Bedrock user guide, "Endpoints supported by Amazon Bedrock"; their names in a signature: openai
# 3.52, providers/bedrock.py, and anthropic 2.12, lib/bedrock/_mantle.py (seen 2026-11-27).
SIGNED_SERVICES: Final[Mapping[Auth, str]] = {
    "bedrock": "bedrock-runtime",
    "bedrock-mantle": "bedrock-mantle",
}


class FetchedMedia(Struct, frozen=True, kw_only=True):
    """The content of a URL, and the media type that the server claimed."""

    content: bytes
    claimed_type: str | None = None


class MediaFetcher(Protocol):
    """Fetches media by URL, from public addresses only."""

    async def fetch(
        self,
        url: str,
        *,
        field: str = "messages",
        bytes_max: int | None = None,
        buffered: Buffered | None = None,
    ) -> FetchedMedia:
        """Fetch the whole body; raise RequestError if the URL is forbidden or cannot be fetched.

        `field` names the request's field with the URL; `bytes_max` overrides the fetcher's limit.
        The body's size is added to `buffered` before the body is read. BufferFull is raised if the
        budget is exhausted.
        """


class ProviderRow(Struct, frozen=True, kw_only=True):
    """A provider's entry in routing.yaml, with its format, transport and address."""

    slug: str
    codec: str
    """The name of a format in `formats.WIRE_FORMATS`."""
    transport: str
    base_url: str | None = None
    """The base URL without a trailing slash; AWS transports have a regional URL by default.
    """
    region: str | None = None
    key: SecretReference | None = None
    auth: Auth = "bearer"
    """The header of the key, `google`, or a service of `SIGNED_SERVICES`."""
    project: str | None = None
    """The Google Cloud project, for `auth: google`."""
    location: str | None = None
    """The Google Cloud location, for `auth: google`."""
    countries: tuple[str, ...] = ()
    """The countries in which the provider runs models, as ISO 3166 codes."""
    prompt_use: PromptUse = UNSTATED
    """The use that the provider makes of prompts."""
    dialect: Dialect = field(default_factory=Dialect)
    name: str | None = None
    """The display name; None if the provider has only a slug."""
    batch: BatchTerms | None = None
    """The terms of the provider's own batches; None if it runs none."""
    background: bool = False
    """True if the provider runs responses in background itself."""


class Provider(Struct, frozen=True):
    """The codecs and the transport of a provider row."""

    codec: Codec | None
    """The codec for chat; None if the format has no chat."""
    transport: Transport
    batch_codecs: Mapping[WorkKind, Callable[[], BatchCodec[Any]]] = field(default_factory=dict)
    """Loaders of the codecs for other kinds of work with whole results."""
    stream_codecs: Mapping[WorkKind, Callable[[], StreamedWorkCodec[Any]]] = field(
        default_factory=dict
    )
    """Loaders of the codecs for other kinds of work with streamed results."""
    batches: Callable[[], ProviderBatches] | None = None
    """Loads the provider's own batches; None if it runs none."""
    background: Callable[[], ProviderBackground] | None = None
    """Loads the responses that the provider runs in background; None if it runs none."""
    job_codecs: Mapping[WorkKind, Callable[[], JobCodec]] = field(default_factory=dict)
    """Loaders of the readers of jobs."""
    job_calls: Callable[[], JobCalls] | None = None
    """Loads the calls for jobs; None if the transport has none."""
