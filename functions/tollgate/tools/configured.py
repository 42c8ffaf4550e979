"""The server tools that routing.yaml configures, opened for each request."""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, assert_never
from zoneinfo import ZoneInfo

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from tollgate.core.addresses import DomainRules
from tollgate.core.clock import Clock
from tollgate.core.content import ServerToolId, Text
from tollgate.core.documents.reading import DocumentReader
from tollgate.core.errors import ErrorCode, GatewayError, UpstreamError
from tollgate.core.money.amounts import nano_usd
from tollgate.core.principal import Principal
from tollgate.core.records.generation import Fee
from tollgate.core.request import GenerationRequest, Tool
from tollgate.core.server_tools import RunResult, ServerTool
from tollgate.routing.chains import RouteSection, ToolOfWeb
from tollgate.routing.planning.prompt_size import BYTES_PER_TOKEN_MIN
from tollgate.routing.tool_sections import (
    DatetimeSection,
    ImageSection,
    ServerToolsSection,
    WebFetchSection,
    WebSearchSection,
)
from tollgate.stores.ports.base import SecretStore
from tollgate.tools.fetch import WebFetch
from tollgate.tools.kinds import declare_kind, result_bytes_max
from tollgate.tools.known_urls import KnownUrls
from tollgate.tools.paint import paint_picture, picture_work
from tollgate.tools.ports.base import (
    EngineCalls,
    PageFetcher,
    Painter,
    RequestTools,
    RunFailure,
    RunFault,
    RunReport,
    ToolBound,
)
from tollgate.tools.search import WebSearch

# Engine name of tools that the gateway runs without an engine.
_OWN: Final = "tollgate"
# Faults of an engine, in contrast to faults in the model's arguments.
_FAULTS_OF_ENGINES: Final[frozenset[RunFault]] = frozenset({"too_many_requests", "unavailable"})
# UTC works without the time zone database, which a system may lack.
_UTC: Final = "UTC"
_Section = WebSearchSection | WebFetchSection | DatetimeSection | ImageSection


class ToolServices(Struct, frozen=True, kw_only=True):
    """The services that tools use."""

    calls: EngineCalls
    pages: PageFetcher
    reader: DocumentReader | None
    secrets: SecretStore
    clock: Clock


class ConfiguredTools(Struct, frozen=True, kw_only=True):
    """Implements `tools.ports.base.ServerTools` for one catalog."""

    section: ServerToolsSection
    routes: Mapping[str, RouteSection]
    painter: Painter
    services: ToolServices | None
    """None for explanations, which run no tool."""

    def open(
        self, request: GenerationRequest, *, route: str | None, principal: Principal
    ) -> RequestTools:
        """Return the tools for one request; `route` is the name of its route, or None."""
        route_section = self.routes.get(route) if route is not None else None
        return _OpenTools(self, route_section, request=request, principal=principal)


class _OpenTools:
    """The tools for one request."""

    def __init__(
        self,
        configured: ConfiguredTools,
        route: RouteSection | None,
        *,
        request: GenerationRequest,
        principal: Principal,
    ) -> None:
        self._section = configured.section
        self._route = route
        self._painter = configured.painter
        self._services = configured.services
        self._principal = principal
        fetches = any(tool.id == "web_fetch" for tool in request.server_tools)
        self._known = KnownUrls(request) if fetches else None

    def declare(self, tool: ServerTool) -> Tool | None:
        """Return the tool's declaration for the model; None for a tool that is not configured."""
        return None if self._find(tool.id) is None else declare_kind(tool.id)

    def bound(self, tool: ServerTool) -> ToolBound:
        """Return the limits for a configured tool, from the request and routing.yaml."""
        section = self._find(tool.id)
        if section is None:
            raise KeyError(tool.id)
        uses = _least(section.uses_max, tool.uses_max)
        match section:
            case WebSearchSection():
                size = result_bytes_max(_least(section.results_max, tool.results_max))
            case WebFetchSection():
                size = result_bytes_max(1, bytes_per_text=section.text_bytes_max)
            case DatetimeSection() | ImageSection():
                size = result_bytes_max()
            case _:
                assert_never(section)
        return ToolBound(
            engine=_engine_of(section),
            uses_max=uses,
            fees_nano_usd=uses * self._fee_max_nano_usd(section),
            result_tokens=-(-size // BYTES_PER_TOKEN_MIN),
        )

    def native(self, tool: ServerTool) -> ServerTool | None:
        """Return a tool, with its limits, for the provider to run; None if providers may not run
        it.
        """
        section = self._find(tool.id)
        if not isinstance(section, WebSearchSection) or not section.native:
            return None
        domains = self._domains("web_search", section.domains, tool)
        if domains.admits_none:
            return None
        return replace(
            tool,
            by_provider=True,
            uses_max=_least(section.uses_max, tool.uses_max),
            allowed_domains=domains.allowed,
            blocked_domains=domains.blocked,
        )

    async def run(
        self, tool: ServerTool, arguments: Mapping[str, object], *, remaining_s: float
    ) -> RunReport:
        """Run a tool once, within `remaining_s` seconds."""
        section = self._find(tool.id)
        if section is None:
            raise KeyError(tool.id)
        engine = _engine_of(section)
        try:
            return await self._run(tool, section, arguments, remaining_s)
        except RunFailure as failure:
            fault, words = failure.fault, failure.words
            raised: Exception = failure
        except GatewayError as error:
            fault, words, raised = "unavailable", "the tool cannot be used at the moment", error
        if getattr(section, "required", False) and fault in _FAULTS_OF_ENGINES:
            message = f"The tool {tool.id} failed: {words}."
            raise UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, message) from raised
        content = (Text(text=f"The tool failed ({fault}): {words}."),)
        return RunReport(result=RunResult(content=content, error=fault), engine=engine)

    async def _run(
        self,
        tool: ServerTool,
        section: _Section,
        arguments: Mapping[str, object],
        remaining_s: float,
    ) -> RunReport:
        services = self._services
        if services is None:
            raise RunFailure("unavailable", "tools cannot be run here")
        match section:
            case WebSearchSection():
                result = await self._search(
                    services, tool, section, arguments, remaining_s=remaining_s
                )
                # If no domain is allowed, the engine is not called, so nothing is charged.
                domains = self._domains("web_search", section.domains, tool)
                price = None if domains.admits_none else section.price
            case WebFetchSection():
                if self._known is None:
                    raise RunFailure("unavailable", "the tool is not enabled")
                fetch = WebFetch(
                    section=section,
                    fetcher=services.pages,
                    reader=services.reader,
                    workspace_id=self._principal.workspace_id,
                )
                result = await fetch.run(
                    arguments,
                    known=self._known,
                    domains=self._domains("web_fetch", section.domains, tool),
                    timeout_s=min(section.timeout_s, remaining_s),
                )
                price = section.price
            case DatetimeSection():
                timezone = tool.location.timezone if tool.location else None
                result = _tell_time(services.clock, arguments, timezone or section.timezone)
                price = None
            case ImageSection():
                return await paint_picture(
                    self._painter,
                    section,
                    arguments,
                    principal=self._principal,
                    timeout_s=min(section.timeout_s, remaining_s),
                )
            case _:
                assert_never(section)
        fees = () if price is None else (Fee(item=tool.id, quantity=1, usd_each=price.call),)
        return RunReport(result=result, engine=_engine_of(section), fees=fees)

    async def _search(
        self,
        services: ToolServices,
        tool: ServerTool,
        section: WebSearchSection,
        arguments: Mapping[str, object],
        *,
        remaining_s: float,
    ) -> RunResult:
        if section.engine is None:
            raise RunFailure("unavailable", "this model's provider cannot search")
        search = WebSearch(
            engine=section.engine,
            section=section,
            calls=services.calls,
            secrets=services.secrets,
        )
        result = await search.run(
            arguments,
            results_max=_least(section.results_max, tool.results_max),
            domains=self._domains("web_search", section.domains, tool),
            location=tool.location,
            timeout_s=min(section.timeout_s, remaining_s),
        )
        if self._known is not None:
            self._known.note(source.url for source in result.sources)
            for source in result.sources:
                self._known.note_text(source.text)
        return result

    def _find(self, id_: ServerToolId) -> _Section | None:
        section: _Section | None = getattr(self._section, id_)
        return section

    def _domains(self, id_: ToolOfWeb, rules: DomainRules, tool: ServerTool) -> DomainRules:
        """Return the route's domain rules, or else routing.yaml's, narrowed by the request's."""
        route_rules = self._route.server_tools.get(id_) if self._route is not None else None
        if route_rules is not None:
            rules = route_rules.merge(rules)
        request_rules = DomainRules(allowed=tool.allowed_domains, blocked=tool.blocked_domains)
        return rules.narrow(request_rules)

    def _fee_max_nano_usd(self, section: _Section) -> int:
        match section:
            case WebSearchSection(price=price) | WebFetchSection(price=price):
                return 0 if price is None else nano_usd(price.call)
            case DatetimeSection():
                return 0
            case ImageSection():
                work = picture_work(section, "")
                return self._painter.fees_max_nano_usd(work, self._principal)
            case _:
                assert_never(section)


def _tell_time(clock: Clock, arguments: Mapping[str, object], timezone: str) -> RunResult:
    """Return the current time in the time zone that the model names, or else in `timezone`."""
    name = arguments.get("timezone") or timezone
    if not isinstance(name, str):
        raise RunFailure("invalid_input", "`timezone` must be a string")
    now = datetime.fromtimestamp(int(clock.now_s()), UTC)
    try:
        local = now if name == _UTC else now.astimezone(ZoneInfo(name))
    except (KeyError, OSError, ValueError) as unknown:
        words = "`timezone` is not a time zone of the IANA database, such as Europe/Berlin"
        raise RunFailure("invalid_input", words) from unknown
    answer = {
        "datetime": local.isoformat(),
        "weekday": local.strftime("%A"),
        "timezone": name,
        "utc": now.isoformat(),
    }
    return RunResult(content=(Text(text=msgspec.json.encode(answer).decode()),))


def _engine_of(section: _Section) -> str:
    match section:
        case WebSearchSection(engine=engine):
            return engine or _OWN
        case ImageSection(model=model):
            return model
        case WebFetchSection() | DatetimeSection():
            return _OWN
        case _:
            assert_never(section)


def _least(limit: int, own_limit: int | None) -> int:
    return limit if own_limit is None else min(limit, own_limit)
