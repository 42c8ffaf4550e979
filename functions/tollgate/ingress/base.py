"""What every client format can do; the mirror image of `providers.base`."""

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Protocol, Self

from msgspec import Struct, field

from tollgate.core.errors import GatewayError
from tollgate.core.events import StreamEvent
from tollgate.core.generation import AttemptRecord, GenerationRecord
from tollgate.core.limits import RateLimit
from tollgate.core.request import GenerationRequest
from tollgate.core.response import GenerationResponse


class ParsedCall(Struct, frozen=True, kw_only=True):
    """A request understood: what to generate, and how the caller wants it told.

    `ignored` names fields that the format does not know; `tells_routing` asks for a `Routed`.
    """

    request: GenerationRequest
    stream: bool
    usage_on_finish: bool = False
    episode_id: str | None = None
    ignored: tuple[str, ...] = ()
    tells_routing: bool = False


class ServedBy(Struct, frozen=True, kw_only=True):
    """Who serves a reply, known from the commit point on.

    `fallback_from` is the model asked first when another one serves, `fallback_depth` how many
    endpoints were tried before; `provider` is None when nobody served.
    """

    generation_id: str
    created_s: int
    model: str
    provider: str | None
    fallback_from: str | None = None
    fallback_depth: int = 0
    adapted: tuple[str, ...] = ()


class Routed(Struct, frozen=True, kw_only=True):
    """How a request was routed, for callers who ask: by which rule, and every attempt so far."""

    requested: str
    catalog_sha: str
    route: str | None = None
    rule: int | None = None
    attempts: tuple[AttemptRecord, ...] = ()

    @classmethod
    def of(cls, record: GenerationRecord) -> Self:
        """What the record of a generation says of it."""
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
        """The frames of one event of a choice, empty if it has none."""

    def close(self, record: GenerationRecord) -> bytes:
        """The last frames of a finished stream: usage, then the end mark."""

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """The frames that end a stream which broke after the commit point."""

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        """The body of a reply that is not streamed; a response for each choice."""


class ErrorReply(Struct, frozen=True, kw_only=True):
    """An error as HTTP: status, headers that belong to it, body."""

    status: int
    body: bytes
    headers: Mapping[str, str] = field(default_factory=dict)


class Ingress(Protocol):
    """Parses requests of one client format, and makes what its replies consist of."""

    def parse(self, body: bytes) -> ParsedCall:
        """Understand a request; RequestError with the field at fault."""

    def renderer(self, call: ParsedCall, served: ServedBy, *, credits_per_usd: Decimal) -> Renderer:
        """A fresh renderer for one reply."""

    def limit_headers(self, requests: RateLimit | None, tokens: RateLimit | None) -> dict[str, str]:
        """Return the headers, in this format's names, that state what a key has left."""

    def error(
        self, error: GatewayError, request_id: str, routed: Routed | None = None
    ) -> ErrorReply:
        """An error in this format's envelope, with how the request was routed if that is told."""
