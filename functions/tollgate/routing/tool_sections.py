"""The section `server_tools` of routing.yaml: tools that the gateway runs for a model."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Struct
from pydantic import Field, StringConstraints

from tollgate.core.addresses import DomainRules
from tollgate.routing.prompt_use_sections import EngineUseSection
from tollgate.routing.scalars import (
    BaseUrl,
    Day,
    Dollars,
    Domains,
    ImageSize,
    KeySection,
    ModelSlug,
    Private,
    RunSeconds,
    Sentence,
    Slug,
    Strict,
)

SearchEngine = Literal["brave", "exa", "firecrawl", "searxng", "tavily"]


class EngineHost(Struct, frozen=True, kw_only=True):
    """The public URL of a search engine (None if it is self-hosted), and whether the engine needs a
    key.
    """

    base_url: str | None
    needs_key: bool


ENGINE_HOSTS: Final[Mapping[SearchEngine, EngineHost]] = {
    "brave": EngineHost(base_url="https://api.search.brave.com", needs_key=True),
    "exa": EngineHost(base_url="https://api.exa.ai", needs_key=True),
    "firecrawl": EngineHost(base_url="https://api.firecrawl.dev", needs_key=True),
    "searxng": EngineHost(base_url=None, needs_key=False),
    "tavily": EngineHost(base_url="https://api.tavily.com", needs_key=True),
}

Uses = Annotated[int, Field(ge=1, le=32)]


class ToolPriceSection(Strict):
    """The price of a tool run, and its source."""

    call: Dollars
    """Price in dollars per run that reached the engine."""
    source: Sentence
    """Web page or package in which the price is published."""
    checked: Day
    """Day on which the source was last read."""


class _WebSection(Strict):
    """Settings shared by the search and fetch tools."""

    uses_max: Uses = 5
    """Maximum number of runs in one request."""
    allowed_domains: Domains = ()
    """Domains that may be searched or fetched; empty allows all domains."""
    blocked_domains: Domains = ()
    """Domains that must not be searched or fetched."""
    timeout_s: RunSeconds = 10.0
    """Time limit for one run, in seconds."""
    required: bool = False
    """True if a failed run ends the request with an error."""

    @property
    def domains(self) -> DomainRules:
        """Domain rules that hold for every request."""
        return DomainRules(allowed=self.allowed_domains, blocked=self.blocked_domains)


class WebSearchSection(_WebSection, EngineUseSection):
    """A tool that searches the web through a search engine, through the model's
    provider, or both.
    """

    engine: SearchEngine | None = None
    """Search engine, used if the provider does not search."""
    native: bool = False
    """True if providers that are able to search do so, at their `price.web_search`."""
    base_url: BaseUrl | None = None
    """URL of the engine; defaults to its public URL."""
    private: Private = None
    key: KeySection | None = None
    price: ToolPriceSection | None = None
    """Price of a search by the engine; required if there is an engine."""
    results_max: Annotated[int, Field(ge=1, le=20)] = 5
    """Maximum number of results per search."""

    @property
    def address(self) -> str | None:
        """URL of the engine; None if it is unknown."""
        if self.base_url is not None or self.engine is None:
            return self.base_url
        return ENGINE_HOSTS[self.engine].base_url

    @property
    def sends_credentials(self) -> bool:
        """True if requests to the engine are sent with a key."""
        return self.key is not None


class WebFetchSection(_WebSection):
    """A tool that reads a web page, given its URL."""

    price: ToolPriceSection
    bytes_max: Annotated[int, Field(ge=1_000, le=20_000_000)] = 2_000_000
    """Maximum size of a page or document, in bytes."""
    text_bytes_max: Annotated[int, Field(ge=1_000, le=1_000_000)] = 30_000
    """Maximum size of the text that the model gets, in bytes."""


class DatetimeSection(Strict):
    """A tool that tells the time, free of charge."""

    uses_max: Uses = 5
    """Maximum number of runs in one request."""
    timezone: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_+/-]{1,64}$")] = "UTC"
    """IANA time zone, used unless a call gives one."""


class ImageSection(Strict):
    """A tool that generates an image with a model of the catalog, at that model's price."""

    model: ModelSlug
    """Slug of a model of kind `image`."""
    size: ImageSize | None = None
    """Size of each image."""
    quality: Slug | None = None
    """Quality of each image."""
    uses_max: Uses = 1
    """Maximum number of runs in one request."""
    timeout_s: RunSeconds = 120.0
    """Time limit for one run, in seconds."""
    required: bool = False
    """True if a failed run ends the request with an error."""


class ServerToolsSection(Strict):
    """Tools that callers may use; a tool without a section is disabled."""

    web_search: WebSearchSection | None = None
    web_fetch: WebFetchSection | None = None
    datetime: DatetimeSection | None = None
    image: ImageSection | None = None
