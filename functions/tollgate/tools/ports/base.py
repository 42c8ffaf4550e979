"""The protocols between generations, server tools and the tools' I/O."""

from collections.abc import Mapping
from typing import Literal, Protocol

from msgspec import Struct

from tollgate.core.addresses import DomainRules
from tollgate.core.content import MadeImage
from tollgate.core.principal import Principal
from tollgate.core.records.generation import Fee
from tollgate.core.request import GenerationRequest, Tool
from tollgate.core.server_tools import RunResult, ServerTool
from tollgate.core.work.images import ImageRequest
from tollgate.http1.egress import Fetched

# Error codes of runs, for the model, the record and the caller. Clients know them from Anthropic's
# web tools (platform.claude.com/docs, "Web search tool" and "Web fetch tool", 2026-11-22).
RunFault = Literal[
    "invalid_input",
    "max_uses_exceeded",
    "query_too_long",
    "too_many_requests",
    "unavailable",
    "unsupported_content_type",
    "url_not_accessible",
    "url_not_allowed",
    "url_not_in_prior_context",
    "url_too_long",
]


class RunFailure(Exception):
    """Raised for a failed run of a tool; `words` describe the failure to the model.

    `words` contain no key, no address of the operator and no part of an engine's reply.
    """

    def __init__(self, fault: RunFault, words: str) -> None:
        super().__init__(words)
        self.fault: RunFault = fault
        self.words = words


class EngineRequest(Struct, frozen=True, kw_only=True):
    """A request to an engine, with the key in the headers and an escaped URL."""

    method: Literal["GET", "POST"]
    url: str
    headers: Mapping[str, str]
    body: bytes = b""


class EngineCalls(Protocol):
    """Sends requests to engines."""

    async def exchange(
        self, engine: str, request: EngineRequest, *, bytes_max: int, timeout_s: float
    ) -> bytes:
        """Return the body of a reply with status 200; raise RunFailure for any other outcome."""


class PageLimits(Struct, frozen=True, kw_only=True):
    """The limits for one fetch."""

    domains: DomainRules
    """Rules for the URL and all redirects."""
    bytes_max: int
    timeout_s: float


class PageFetcher(Protocol):
    """Fetches pages from public addresses only."""

    async def fetch_page(self, url: str, limits: PageLimits) -> Fetched:
        """Return the page at a URL; raise RunFailure if the URL must not or cannot be fetched."""


class Painted(Struct, frozen=True, kw_only=True):
    """Images that a model has made, and their fees."""

    images: tuple[MadeImage, ...]
    fees: tuple[Fee, ...]


class Painter(Protocol):
    """Makes images with image models from the catalog."""

    def fees_max_nano_usd(self, work: ImageRequest, principal: Principal) -> int:
        """Return the maximum cost of the work; raise GatewayError if no model may do the work."""

    async def paint(self, work: ImageRequest, principal: Principal, *, timeout_s: float) -> Painted:
        """Return the images; raise RunFailure if no endpoint returns images in time."""


class ToolBound(Struct, frozen=True, kw_only=True):
    """The maximum number of runs of a tool in one request, and the maximum cost and result size of
    these runs.
    """

    engine: str
    """Name of the engine in routing.yaml."""
    uses_max: int
    fees_nano_usd: int
    """Maximum fees for all runs together."""
    result_tokens: int
    """Maximum number of tokens in the result of one run."""


class RunReport(Struct, frozen=True, kw_only=True):
    """The result of one run, with its engine and fees."""

    result: RunResult
    engine: str
    """Name of the engine in routing.yaml."""
    fees: tuple[Fee, ...] = ()
    """Fees for the run; empty if the engine was not called."""
    made: tuple[MadeImage, ...] = ()
    """Images for the reply."""


class RequestTools(Protocol):
    """The tools for one request; they also remember the URLs that the request may fetch."""

    def declare(self, tool: ServerTool) -> Tool | None:
        """Return the tool's declaration for the model; None for a tool that is not configured."""

    def bound(self, tool: ServerTool) -> ToolBound:
        """Return the limits for a configured tool, from the request and routing.yaml."""

    def native(self, tool: ServerTool) -> ServerTool | None:
        """Return a tool, with its limits, for the provider to run; None if providers may not run
        it.
        """

    async def run(
        self, tool: ServerTool, arguments: Mapping[str, object], *, remaining_s: float
    ) -> RunReport:
        """Run a tool once, within `remaining_s` seconds.

        If the engine fails, return a result with an error. Raise UpstreamError instead if
        routing.yaml requires the tool.
        """


class ServerTools(Protocol):
    """The tools that routing.yaml configures."""

    def open(
        self, request: GenerationRequest, *, route: str | None, principal: Principal
    ) -> RequestTools:
        """Return the tools for one request; `route` is the name of its route, or None."""
