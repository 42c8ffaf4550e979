"""Sections of routing.yaml and of its compiled form, as strict models.

`file/load.py` reads YAML on a laptop or in CI, `planning/catalog.py` reads the compiled form in a
function. Editors show the docstrings of fields through the published JSON Schema.
"""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Final, Literal, Self, get_args

from pydantic import AfterValidator, Field, StringConstraints, model_validator
from pydantic_core import PydanticKnownError

from tollgate.core.limits import Period, TierLimits
from tollgate.core.money.amounts import nano_usd
from tollgate.core.principal import SOURCE_LABEL
from tollgate.core.prompt_policy import UNSTATED
from tollgate.core.request import Capability, Modality, OutputModality
from tollgate.core.service_tiers import PricedTier
from tollgate.core.work.kinds import WorkKind
from tollgate.providers.ports.base import SIGNED_SERVICES, Auth, ProviderRow
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import BEDROCK_TRANSPORTS, TRANSPORT_NEEDS, FormatName
from tollgate.providers.ports.wire_format import TransportName
from tollgate.routing.background_section import BackgroundSection
from tollgate.routing.batch_sections import BatchSection
from tollgate.routing.cache_sections import CacheableSection
from tollgate.routing.chains import GuardrailSection, RouteSection
from tollgate.routing.defaults_sections import AttemptTimeoutsSection, DefaultsSection
from tollgate.routing.lifecycle import EndSection, SuccessionSection
from tollgate.routing.price import PriceSchedule
from tollgate.routing.price_sections import OverrideSection, PriceSection
from tollgate.routing.prompt_use_sections import PromptUseSection
from tollgate.routing.scalars import (
    BaseUrl,
    Country,
    Day,
    Dimensions,
    Dollars,
    Glob,
    GoogleName,
    KeySection,
    ModelSlug,
    Name,
    Percent,
    Private,
    Region,
    Sentence,
    Slug,
    Stated,
    Strict,
    Tokens,
)


def _check_positive(dollars: Decimal) -> Decimal:
    if dollars <= 0:
        raise PydanticKnownError("greater_than", {"gt": 0})
    return dollars


class BillingSection(Strict):
    """Billing defaults for workspaces, and the unit of credits."""

    admission: Literal["positive", "covered"] = "positive"
    """`positive` admits requests while any credit is left; `covered` only if the balance covers the
    maximum cost."""
    credits_per_usd: Annotated[Dollars, AfterValidator(_check_positive)] = Decimal(1)
    """Credits that callers see for one dollar."""


class ProviderSection(Strict):
    """Provider with its format, transport, address and key; needs `codec` and `transport`.

    A row with the name of a row of the included catalog is merged into that row.
    """

    name: Sentence | None = None
    """Display name, as on OpenRouter; defaults to the slug."""
    codec: FormatName
    """Wire format of requests and replies."""
    transport: TransportName
    """Protocol that carries requests and replies."""
    base_url: BaseUrl | None = None
    """Address for `http_sse`; paths are appended to it."""
    private: Private = None
    region: Region | None = None
    """AWS region, for AWS transports and for signatures."""
    key: KeySection | None = None
    auth: Auth = "bearer"
    """`bearer`, the name of another header for the key, `google` for access tokens, or `bedrock` or
    `bedrock-mantle` for signatures with the gateway's AWS credentials."""
    project: GoogleName | None = None
    """Google Cloud project, for `auth: google`."""
    location: GoogleName | None = None
    """Google Cloud location, for `auth: google`."""
    countries: Annotated[tuple[Country, ...], Field(max_length=64)] = ()
    """Countries in which the provider runs models, as ISO 3166 codes, shown by `/models`. Countries
    of AWS regions are known without this key."""
    prompt_use: PromptUseSection | None = None
    data_policy: Slug | None = None
    """Your name for the way in which the provider treats prompts. A fallback never leads to another
    policy.
    """
    dialect: Dialect = Field(default_factory=Dialect)
    batch: BatchSection | None = None
    background: BackgroundSection | None = None

    @model_validator(mode="after")
    def _can_batch(self) -> Self:
        """Raise ValueError for batches that the row's key, transport or codec cannot serve."""
        batch = self.batch
        if batch is not None and (
            self.transport != ("bedrock_runtime" if batch.form == "bedrock" else "http_sse")
            or self.auth == "google"
            or self.auth in SIGNED_SERVICES
            or not batch.can_serve(self.codec)
        ):
            raise ValueError("must have no batch of this form with this codec, transport and auth")
        return self

    @model_validator(mode="after")
    def _can_run_in_background(self) -> Self:
        """Raise ValueError if the row has `background`, but its provider cannot have that mode."""
        if self.background is not None and (
            self.codec != "openai_responses"
            or self.transport != "http_sse"
            or self.auth == "google"
            or self.auth in SIGNED_SERVICES
        ):
            raise ValueError("must not have `background` with this codec, transport and auth")
        return self

    @property
    def address(self) -> str | None:
        """Address to which paths are appended; None if the transport knows the address."""
        return self.base_url

    @property
    def signs_as(self) -> str | None:
        """Service of Bedrock for which requests are signed; None for other providers."""
        if self.transport in BEDROCK_TRANSPORTS:
            return "bedrock"
        return self.auth if self.auth in SIGNED_SERVICES else None

    @property
    def sends_credentials(self) -> bool:
        """True if requests carry a key, an access token, or the signature of a role."""
        is_signed = TRANSPORT_NEEDS.get(self.transport) == "region" or self.signs_as is not None
        return self.key is not None or self.auth == "google" or is_signed

    def row(self, slug: str) -> ProviderRow:
        """Return the provider in the type that the registry uses."""
        made = ("slug", "key", "prompt_use", "batch", "background")
        names = [name for name in ProviderRow.__struct_fields__ if name not in made]
        return ProviderRow(
            slug=slug,
            key=self.key.reference if self.key else None,
            prompt_use=self.prompt_use.use if self.prompt_use else UNSTATED,
            batch=self.batch.terms if self.batch else None,
            background=self.background is not None,
            **{name: getattr(self, name) for name in names},
        )


class ServiceTierSection(Strict):
    """Prices of an endpoint at a service tier other than the default."""

    price: PriceSection
    overrides: Annotated[tuple[OverrideSection, ...], Field(max_length=32)] = ()
    """Rates under conditions, as for an endpoint."""

    @property
    def schedule(self) -> PriceSchedule:
        """Price by time, prompt size and image."""
        return _schedule(self.price, self.overrides)


def _schedule(price: PriceSection, overrides: tuple[OverrideSection, ...]) -> PriceSchedule:
    return PriceSchedule(
        base=price.price, overrides=tuple(section.override for section in overrides)
    )


class EndpointSection(EndSection):
    """Model at one provider."""

    provider: Slug
    upstream: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    """Name of the model at the provider."""
    billed_as: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=256)], ...],
        Field(max_length=32),
    ] = ()
    """Globs of the model's names on the provider's invoices, for `tollgate reconcile`. Default: the
    upstream name, optionally followed by a date or a class of tokens."""
    max_output: Tokens | None = None
    """Maximum number of tokens in a reply at this endpoint, if less than the model's."""
    price: PriceSection
    overrides: Annotated[tuple[OverrideSection, ...], Field(max_length=32)] = ()
    """Rates under conditions, such as times or large prompts. The last override that holds wins."""
    service_tiers: Mapping[PricedTier, ServiceTierSection] = Field(default={})
    """Prices of the service tiers that callers and routes may ask for. A tier without a price is
    left out of requests."""
    weight: Percent | None = None
    """Share of requests in percent; without weights, endpoints are tried in order."""
    timeouts: Annotated[AttemptTimeoutsSection, Stated] | None = None
    """Keys that override those in `defaults.timeouts`."""
    dialect: Annotated[Dialect, Stated] | None = None
    """Keys that override those in the provider's dialect."""
    prompt_use: PromptUseSection | None = None
    """Use of prompts for this model, in place of the provider's."""
    guardrail: GuardrailSection | None = None

    @property
    def schedule(self) -> PriceSchedule:
        """Price by time, prompt size and image."""
        return _schedule(self.price, self.overrides)


class VectorsSection(Strict):
    """Vectors that a model of kind embedding produces."""

    dimensions: Dimensions
    """Number of dimensions, unless a request asks for fewer."""
    shorter: Literal["any"] | Annotated[tuple[Dimensions, ...], Field(max_length=64)] = ()
    """Smaller numbers of dimensions that a request may ask for: a list, or `any`."""
    space: Slug | None = None
    """Your name for a set of models whose vectors are comparable. Without a name, the model has no
    fallback to another model."""

    def can_have(self, dimensions: int) -> bool:
        """Return True if a request may ask for vectors of this size."""
        if dimensions == self.dimensions:
            return True
        if self.shorter == "any":
            return dimensions < self.dimensions
        return dimensions in self.shorter


class ModelSection(SuccessionSection):
    """Model with its limits, and endpoints by preference; needs `name`, `context`, `endpoints`.

    A row with the name of a row of the included catalog is merged into that row.
    """

    name: Sentence
    """Display name."""
    names: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    """Further names under which callers may request the model, such as dated snapshots. The model
    ids of its endpoints are names without an entry here."""
    replaces: Annotated[tuple[Name, ...], Field(max_length=64)] = ()
    """Names of retired models. Errors for these names recommend this model."""
    kind: WorkKind = "chat"
    """Kind of work; each kind has its own HTTP routes."""
    context: Tokens
    """Maximum number of tokens in prompt and reply together; for kinds other than chat, in one
    input."""
    max_output: Tokens | None = None
    """Maximum number of tokens in a reply; required for kind chat."""
    vectors: VectorsSection | None = None
    """Vectors of the model; required for kind embedding."""
    input: Annotated[tuple[Modality, ...], Field(min_length=1)] = ("text",)
    """Modalities that a message may contain."""
    makes: Annotated[tuple[OutputModality, ...], Field(min_length=1)] = ("text",)
    """Modalities that a reply of kind chat may contain."""
    supports: tuple[Capability, ...] = ()
    cacheable: CacheableSection | None = None
    endpoints: Annotated[tuple[EndpointSection, ...], Field(min_length=1, max_length=16)]

    def vector_space(self, slug: str) -> str:
        """Return the model's vector space; models that share a space can replace each other."""
        vectors = self.vectors
        return slug if vectors is None else f"{vectors.space or slug} {vectors.dimensions}"

    @property
    def known_since(self) -> date:
        """Release day, or else the earliest day on which a price was checked."""
        return self.released or min(endpoint.price.checked for endpoint in self.endpoints)


class AliasSection(Strict):
    """Another name for a model, route or alias."""

    to: Name
    sunset: Day | None = None
    """Day after which `tollgate check` warns that the alias still exists."""


class BudgetSection(Strict):
    """Dollars that each key with a tier may spend in a period."""

    usd: Dollars
    per: Period


class KeyTierSection(Strict):
    """Limits for all keys with a tier. Where a key's own limits are stricter, they apply."""

    models: Annotated[tuple[Glob, ...], Field(min_length=1, max_length=256)] = ("*",)
    """Globs of models, aliases and routes that a key may request."""
    rpm: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    """Requests per minute; bursts of twice this number are allowed."""
    max_cost_usd_per_request: Dollars | None = None
    """Maximum possible cost of one request, in dollars."""
    budget: BudgetSection | None = None

    @property
    def limits(self) -> TierLimits | None:
        """Limits that the ledger enforces for each key; None without such limits."""
        if self.rpm is None and self.budget is None:
            return None
        if self.budget is None:
            return TierLimits(requests_per_minute=self.rpm)
        return TierLimits(
            requests_per_minute=self.rpm,
            budget_nano_usd=nano_usd(self.budget.usd),
            budget_period=self.budget.per,
        )


class _NamedSections(Strict):
    """Sections that every file may have, except the models."""

    version: Literal[1]
    providers: Mapping[Slug, ProviderSection] = Field(default={})
    """Providers by a slug of your choice."""
    aliases: Mapping[Name, AliasSection] = Field(default={})
    """Aliases by the name that a caller writes."""
    routes: Mapping[Name, RouteSection] = Field(default={})
    """Routes (chains of models) by the name that a caller writes."""
    key_tiers: Mapping[Slug, KeyTierSection] = Field(default={})
    """Tiers by name: limits for all keys with that tier."""


class IncludedFile(_NamedSections):
    """File that adds providers, models, names and tiers to the main file."""

    models: Mapping[ModelSlug, ModelSection] = Field(default={})
    """Models by `author/model`."""


ATTRIBUTIONS_MAX: Final = 4
# Labels that an operator sets on keys, and the other dimensions by which spending is grouped.
_TAKEN_LABELS: Final = frozenset(
    {"day", "environment", "key", "member", "model", "provider", SOURCE_LABEL, "team"}
)
# Headers with secrets, whose values must never be stored.
_SECRET_HEADERS: Final = frozenset(
    {"authorization", "cookie", "proxy-authorization", *get_args(Auth)}
)


def _check_label(name: str) -> str:
    if name in _TAKEN_LABELS:
        raise ValueError(f"must not be {name}, which is set elsewhere")
    return name


def _check_source(source: str) -> str:
    if source.removeprefix("header:") in _SECRET_HEADERS:
        raise ValueError("must not be a header that carries a secret")
    return source


AttributionLabel = Annotated[
    str, StringConstraints(pattern=r"^[a-z][a-z0-9_]{0,31}$"), AfterValidator(_check_label)
]
# This is a string and not a section, because a section would slow down the start of a function.
AttributionSource = Annotated[
    str,
    StringConstraints(pattern=r"^(header:[a-z0-9-]{1,64}|metadata:[A-Za-z0-9_.-]{1,64})$"),
    AfterValidator(_check_source),
]


class _MainSections(Strict):
    """Sections that only the main file has, except the rarely used ones."""

    defaults: DefaultsSection = Field(default_factory=DefaultsSection)
    billing: BillingSection = Field(default_factory=BillingSection)
    attribution: Annotated[
        Mapping[AttributionLabel, AttributionSource], Field(max_length=ATTRIBUTIONS_MAX)
    ] = Field(default={})
    """Sources of labels that callers send, by label: `header:` and a header name in lower case, or
    `metadata:` and a name in the body's metadata."""


class MainFile(_MainSections, IncludedFile):
    """Main file, except the rarely used sections."""


class CompiledRouting(_MainSections, _NamedSections):
    """Compiled form as a starting function reads it, without the parts that are read at their first
    use.
    """
