"""The two halves of a provider: a pure codec, and a transport that does the I/O."""

from collections.abc import AsyncIterator, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Literal, Protocol

from msgspec import Struct, field
from pydantic import JsonValue

from tollgate.core.errors import UpstreamError
from tollgate.core.events import StreamEvent
from tollgate.core.request import Capability, GenerationRequest, Modality
from tollgate.core.secret import SecretReference
from tollgate.providers.dialect import Dialect
from tollgate.providers.shared.emulation import NOT_WRAPPED, Wrapping


class Guardrail(Struct, frozen=True, kw_only=True):
    """A guardrail that the provider applies; a call that cannot reach it is refused."""

    id: str
    version: str


class Target(Struct, frozen=True, kw_only=True):
    """One endpoint of one model at one provider.

    `provider` and `model` are slugs of the catalog, `upstream_model` the provider's own name.
    `output_tokens_max` is the model's limit, to which a caller's is capped; `supports` and `input`
    are what the model can do and take in; a codec that cannot have a `guardrail` applied refuses.
    `project` and `location` are where Google Cloud has it, None elsewhere.
    """

    provider: str
    model: str
    upstream_model: str
    dialect: Dialect = field(default_factory=Dialect)
    output_tokens_max: int | None = None
    supports: frozenset[Capability] = frozenset()
    input: frozenset[Modality] = frozenset({"text"})
    guardrail: Guardrail | None = None
    project: str | None = None
    location: str | None = None

    @property
    def endpoint_id(self) -> str:
        """What names this endpoint in draws, records and cooldowns."""
        return f"{self.provider}/{self.upstream_model}"

    @property
    def enforces_schemas(self) -> bool:
        """Whether an answer is held to a JSON Schema by model and server."""
        able = "structured_output" in self.supports
        return able and self.dialect.output_format == "json_schema"

    def limited(self, output_tokens_max: int | None) -> int | None:
        """A caller's limit, or the model's own where that is less; None if the caller has none."""
        if output_tokens_max is None or self.output_tokens_max is None:
            return output_tokens_max
        return min(output_tokens_max, self.output_tokens_max)


class Timeouts(Struct, frozen=True, kw_only=True):
    """Limits of one attempt, in seconds."""

    connect_s: float = 10.0
    first_token_s: float = 120.0
    idle_s: float = 120.0


class WireRequest(Struct, frozen=True, kw_only=True):
    """What goes to the provider: a path under its base URL, a JSON body, headers of the format.

    `adapted` names the caller's parameters that this provider cannot take and that were left out.
    `wrapping` is what the answer will have around it, where something is emulated.
    """

    path: str
    body: Mapping[str, JsonValue]
    headers: Mapping[str, str] = field(default_factory=dict)
    adapted: tuple[str, ...] = ()
    wrapping: Wrapping = NOT_WRAPPED


class Frame(Struct, frozen=True, kw_only=True):
    """One event as it came off the wire: an SSE event, or a message of an event stream.

    `event` is the SSE event name or the event stream's event type; `exception` is the exception
    type of an event-stream message that is one.
    """

    data: bytes
    event: str = "message"
    exception: str | None = None


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
        """The events of one frame; UpstreamError if the frame is an error or cannot be read."""

    def end(self) -> Iterable[StreamEvent]:
        """The events due when the stream closes; UpstreamError if it closed too early."""


class Demultiplexer(Protocol):
    """Gives each choice of one stream the frames that its decoder is to see; owns their state."""

    def feed(self, frame: Frame) -> Iterable[tuple[int, Frame]]:
        """Yield the frames of each choice; UpstreamError for a choice that was not requested.

        Usage must reach one decoder only, or it would be counted once for each choice.
        """


class Codec(Struct, frozen=True, kw_only=True):
    """Translates between the middle and one provider format; does no I/O and keeps no state."""

    # Encode a request; RequestError for what the provider can never take.
    encode: Callable[[GenerationRequest, Target], WireRequest]
    # Make a new decoder, for one attempt.
    decoder: Callable[[Target], Decoder]
    # Translate an error reply into the public error that it means.
    error: Callable[[UpstreamRefused, Target], UpstreamError]
    # Make a new demultiplexer of so many choices, for one stream; None if the format holds one
    # choice in a stream. It is used where the dialect has `native_choices`.
    demultiplexer: Callable[[Target, int], Demultiplexer] | None = None


class Transport(Protocol):
    """Carries wire requests of one provider row."""

    def open(
        self, request: WireRequest, timeouts: Timeouts
    ) -> AbstractAsyncContextManager[AsyncIterator[Sequence[Frame]]]:
        """Send, and yield the frames as they come, together those that came together.

        Raises UpstreamRefused for an error status, UpstreamError for what the network or missing
        credentials do. First-token and idle limits are the caller's; this one limits connecting.
        Leaving the context closes the connection.
        """


# How a key is sent: as a bearer token, in a header of that name, or not at all, because it is the
# account for which Google gives access tokens.
Auth = Literal["bearer", "api-key", "x-api-key", "x-goog-api-key", "google"]


class FetchedMedia(Struct, frozen=True, kw_only=True):
    """What lay behind a URL, and the type that its server claimed."""

    content: bytes
    claimed_type: str | None = None


class MediaFetcher(Protocol):
    """Fetches what a caller points to, from public addresses only."""

    async def fetch(self, url: str) -> FetchedMedia:
        """The whole body; RequestError for what may not be, or cannot be fetched."""


class ProviderRow(Struct, frozen=True, kw_only=True):
    """A provider as routing.yaml states it: a codec, a transport, and where to reach it.

    `base_url` has no trailing slash; on AWS transports it replaces the regional endpoint.
    `project` and `location` belong to Google Cloud.
    """

    slug: str
    codec: str
    transport: str
    base_url: str | None = None
    region: str | None = None
    key: SecretReference | None = None
    auth: Auth = "bearer"
    project: str | None = None
    location: str | None = None
    dialect: Dialect = field(default_factory=Dialect)


class Provider(Struct, frozen=True):
    """A row made real."""

    codec: Codec
    transport: Transport
