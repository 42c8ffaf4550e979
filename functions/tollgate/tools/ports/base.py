"""The protocols between generations, the tools that run in them, and the tools' I/O."""

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

# The codes of failed runs, for the model, the record and the caller. They are those of Anthropic's
# two web tools (platform.claude.com/docs, "Web search tool" and "Web fetch tool", 2026-11-22), so
# that clients of that format know them.
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
    """Raised by a tool or its I/O for a run that failed; `words` are for the model.

    They contain no key, no address of the operator and nothing from an engine's reply.
    """

    def __init__(self, fault: RunFault, words: str) -> None:
        super().__init__(words)
        self.fault: RunFault = fault
        self.words = words


class EngineRequest(Struct, frozen=True, kw_only=True):
    """A request to an engine, with the key among the headers and the URL already escaped."""

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
    """The limits of one fetch."""

    domains: DomainRules
    """Rules for the address and for every redirect."""
    bytes_max: int
    timeout_s: float


class PageFetcher(Protocol):
    """Fetches pages from public addresses only."""

    async def fetch_page(self, url: str, limits: PageLimits) -> Fetched:
        """Return the page at a URL; raise RunFailure if the URL must not or cannot be fetched."""


class Painted(Struct, frozen=True, kw_only=True):
    """Pictures that a model made, and the fees for them."""

    images: tuple[MadeImage, ...]
    fees: tuple[Fee, ...]


class Painter(Protocol):
    """Makes pictures with image models of the catalog."""

    def fees_max_nano_usd(self, work: ImageRequest, principal: Principal) -> int:
        """Return the most that the work can cost; raise GatewayError if no model may do it."""

    async def paint(self, work: ImageRequest, principal: Principal, *, timeout_s: float) -> Painted:
        """Return the pictures; raise RunFailure if no endpoint makes them in time."""


class ToolBound(Struct, frozen=True, kw_only=True):
    """The maximum number of runs of one tool in a request, with their costs and result size."""

    engine: str
    """Name of the engine that runs the tool, as in routing.yaml."""
    uses_max: int
    fees_nano_usd: int
    """Fees of all runs together."""
    result_tokens: int
    """Tokens of the result of one run."""


class RunReport(Struct, frozen=True, kw_only=True):
    """The result of one run, with its engine and fees."""

    result: RunResult
    engine: str
    """Name of the engine that ran, as in routing.yaml."""
    fees: tuple[Fee, ...] = ()
    """Charges for the run; empty if the engine was not reached."""
    made: tuple[MadeImage, ...] = ()
    """Pictures that the run made, which become part of the reply."""


class RequestTools(Protocol):
    """The tools of one request, which also keep the URLs that the request may fetch."""

    def declare(self, tool: ServerTool) -> Tool | None:
        """Return the tool as the model sees it; None if routing.yaml does not configure it."""

    def bound(self, tool: ServerTool) -> ToolBound:
        """Return the bound of a configured tool, by its request and by routing.yaml."""

    def native(self, tool: ServerTool) -> ServerTool | None:
        """Return a tool with its limits for providers that run it; None if no provider may."""

    async def run(
        self, tool: ServerTool, arguments: Mapping[str, object], *, remaining_s: float
    ) -> RunReport:
        """Run a tool once, within `remaining_s`.

        A failing engine makes a result with an error, unless routing.yaml requires the tool: then
        the failure raises UpstreamError.
        """


class ServerTools(Protocol):
    """The tools that routing.yaml configures."""

    def open(
        self, request: GenerationRequest, *, route: str | None, principal: Principal
    ) -> RequestTools:
        """Return the tools of one request; `route` is the name of its route, if it uses one."""
