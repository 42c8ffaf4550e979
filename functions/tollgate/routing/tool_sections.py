"""The section `server_tools` of routing.yaml: the tools that the gateway runs for a model."""

from collections.abc import Mapping
from typing import Annotated, Final, Literal

from msgspec import Struct
from pydantic import Field, StringConstraints

from tollgate.core.addresses import DomainRules
from tollgate.routing.scalars import (
    BaseUrl,
    Day,
    Dollars,
    Domains,
    ImageSize,
    KeySection,
    ModelSlug,
    RunSeconds,
    Sentence,
    Slug,
    Strict,
)

SearchEngine = Literal["brave", "exa", "firecrawl", "searxng", "tavily"]


class EngineHost(Struct, frozen=True, kw_only=True):
    """The address of a search engine, None if each operator has one of their own, and its key."""

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
    """The price of a tool's run, and its source."""

    call: Dollars = Field(description="Per run that reached its engine.")
    source: Sentence = Field(description="Page or package that publishes the price.")
    checked: Day = Field(description="Day on which the source was read.")


class _WebSection(Strict):
    """Settings of both tools of the web."""

    uses_max: Uses = Field(default=5, description="Runs of one request, at most.")
    allowed_domains: Domains = Field(
        default=(), description="The only domains that are searched or fetched; empty for any."
    )
    blocked_domains: Domains = Field(
        default=(), description="Domains that are neither searched nor fetched."
    )
    timeout_s: RunSeconds = Field(default=10.0, description="Time of one run.")
    required: bool = Field(
        default=False, description="Whether a run that fails ends the request with an error."
    )

    @property
    def domains(self) -> DomainRules:
        """The rules that hold for every request."""
        return DomainRules(allowed=self.allowed_domains, blocked=self.blocked_domains)


class WebSearchSection(_WebSection):
    """The tool that searches the web: by an engine, by the model's own provider, or both."""

    engine: SearchEngine | None = Field(
        default=None, description="Engine that searches where no provider does it by itself."
    )
    native: bool = Field(
        default=False,
        description="Whether providers search by themselves where they can, at their "
        "`price.web_search`.",
    )
    base_url: BaseUrl | None = Field(
        default=None, description="Address of the engine; its public one if it is left out."
    )
    private: bool | None = Field(
        default=None,
        description="Whether `base_url` is in a network of your own, where a key may go by http.",
    )
    key: KeySection | None = None
    price: ToolPriceSection | None = Field(
        default=None, description="Price of a search by the engine, which needs one."
    )
    results_max: Annotated[int, Field(ge=1, le=20)] = Field(
        default=5, description="Results of one search, at most."
    )

    @property
    def address(self) -> str | None:
        """The address of the engine; None if it has none."""
        if self.base_url is not None or self.engine is None:
            return self.base_url
        return ENGINE_HOSTS[self.engine].base_url

    @property
    def sends_credentials(self) -> bool:
        """True if its requests have a key."""
        return self.key is not None


class WebFetchSection(_WebSection):
    """The tool that reads a page by its address."""

    price: ToolPriceSection
    bytes_max: Annotated[int, Field(ge=1_000, le=20_000_000)] = Field(
        default=2_000_000, description="Bytes of a page or a document, at most."
    )
    text_bytes_max: Annotated[int, Field(ge=1_000, le=1_000_000)] = Field(
        default=30_000, description="Bytes of its text that the model is given, at most."
    )


class DatetimeSection(Strict):
    """The tool that tells the time, which is free."""

    uses_max: Uses = Field(default=5, description="Runs of one request, at most.")
    timezone: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_+/-]{1,64}$")] = Field(
        default="UTC", description="Time zone of the IANA database, where no other is requested."
    )


class ImageSection(Strict):
    """The tool that makes a picture by a model of the catalog, at that model's price."""

    model: ModelSlug = Field(description="Model of the kind image.")
    size: ImageSize | None = Field(default=None, description="Size of each picture.")
    quality: Slug | None = Field(default=None, description="Quality of each picture.")
    uses_max: Uses = Field(default=1, description="Runs of one request, at most.")
    timeout_s: RunSeconds = Field(default=120.0, description="Time of one run.")
    required: bool = Field(
        default=False, description="Whether a run that fails ends the request with an error."
    )


class ServerToolsSection(Strict):
    """The tools that callers may switch on; a tool without a section is not run."""

    web_search: WebSearchSection | None = None
    web_fetch: WebFetchSection | None = None
    datetime: DatetimeSection | None = None
    image: ImageSection | None = None
