"""The protocol between the rounds of a generation and the tools that run within them."""

from collections.abc import Mapping
from typing import Protocol

from msgspec import Struct

from tollgate.core.content import MadeImage
from tollgate.core.generation import Fee
from tollgate.core.principal import Principal
from tollgate.core.request import GenerationRequest, Tool
from tollgate.core.server_tools import RunResult, ServerTool


class ToolBound(Struct, frozen=True, kw_only=True):
    """The most that one tool of a request can run, cost and say."""

    uses_max: int
    fees_nano_usd: int
    """The fees of all its runs together."""
    result_tokens: int
    """The tokens of the result of one run."""


class RunReport(Struct, frozen=True, kw_only=True):
    """The account of one run."""

    result: RunResult
    engine: str
    """The name of the engine that ran, as routing.yaml has it."""
    fees: tuple[Fee, ...] = ()
    """The charges for the run: none if the engine was not reached."""
    made: tuple[MadeImage, ...] = ()
    """Pictures that the run made, which are a part of the answer."""


class RequestTools(Protocol):
    """The tools of one request, which remember the URLs that the request may fetch."""

    def declare(self, tool: ServerTool) -> Tool | None:
        """Return the tool as the model sees it; None if routing.yaml does not configure it."""

    def bound(self, tool: ServerTool) -> ToolBound:
        """Return the bound of a configured tool, by its request and by routing.yaml."""

    async def run(
        self, tool: ServerTool, arguments: Mapping[str, object], *, remaining_s: float
    ) -> RunReport:
        """Run a tool once, within the time that is left.

        An engine that fails is a result with an error; a tool that routing.yaml requires raises
        UpstreamError in its place.
        """


class ServerTools(Protocol):
    """The tools that routing.yaml configures."""

    def open(
        self, request: GenerationRequest, *, route: str | None, principal: Principal
    ) -> RequestTools:
        """Return the tools of one request, which leads to models by a route or by none."""
