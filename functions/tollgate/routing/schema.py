"""The sections of routing.yaml and of its compiled form, as one set of strict models.

No file is read here: `file/load.py` reads YAML on a laptop or in CI, `planning/catalog.py` reads
the compiled form in a function. Descriptions of fields are shown by editors, through the published
JSON Schema.
"""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Final, Literal, get_args

from pydantic import AfterValidator, Field, StringConstraints
from pydantic_core import PydanticKnownError

from tollgate.core.limits import Period, TierLimits
from tollgate.core.money.amounts import nano_usd
from tollgate.core.request import Capability, Modality, OutputModality
from tollgate.core.work.kinds import WorkKind
from tollgate.providers.ports.base import Auth, ProviderRow
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import TRANSPORT_NEEDS, FormatName
from tollgate.providers.ports.wire_format import TransportName
from tollgate.routing.chains import GuardrailSection, RouteSection
from tollgate.routing.defaults_sections import AttemptTimeoutsSection, DefaultsSection
from tollgate.routing.lifecycle import EndSection, SuccessionSection
from tollgate.routing.price import PriceSchedule
from tollgate.routing.price_sections import OverrideSection, PriceSection
from tollgate.routing.scalars import (
    BaseUrl,
    Day,
    Dimensions,
    Dollars,
    Glob,
    GoogleName,
    KeySection,
    ModelSlug,
    Name,
    Percent,
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
    """Settings of workspaces that choose no others, and the unit of credits."""

    admission: Literal["positive", "covered"] = Field(
        default="positive",
        description="`positive` admits a request while anything is left, `covered` only if its "
        "highest cost is left.",
    )
    credits_per_usd: Annotated[Dollars, AfterValidator(_check_positive)] = Field(
        default=Decimal(1), description="Credits that a caller sees for one dollar."
    )


class ProviderSection(Strict):
    """A provider as a row: its format, its transport, its address and its key."""

    name: Sentence | None = Field(
        default=None, description="Name for people, as OpenRouter shows it; by default the slug."
    )
    codec: FormatName = Field(description="Format of its requests and answers.")
    transport: TransportName = Field(description="Way in which its bytes travel.")
    base_url: BaseUrl | None = Field(
        default=None, description="Address to which paths are appended, for `http_sse`."
    )
    private: bool | None = Field(
        default=None,
        description="Whether `base_url` is in a network of your own, where a key may go by http.",
    )
    region: Region | None = Field(default=None, description="AWS region, for AWS's transports.")
    key: KeySection | None = None
    auth: Auth = Field(
        default="bearer",
        description="`bearer`, the header that takes the key, or `google` for access tokens.",
    )
    project: GoogleName | None = Field(
        default=None, description="Google Cloud project, for `auth: google`."
    )
    location: GoogleName | None = Field(
        default=None, description="Google Cloud location, for `auth: google`."
    )
    data_policy: Slug | None = Field(
        default=None,
        description="Name of your own for its treatment of prompts; no chain leads from one policy "
        "to another.",
    )
    dialect: Dialect = Field(default_factory=Dialect)

    @property
    def address(self) -> str | None:
        """The address to which paths are appended; None where its transport knows it."""
        return self.base_url

    @property
    def sends_credentials(self) -> bool:
        """True if its requests have a key, a token of an account, or a signature of the role."""
        is_signed = TRANSPORT_NEEDS.get(self.transport) == "region"
        return self.key is not None or self.auth == "google" or is_signed

    def row(self, slug: str) -> ProviderRow:
        """Build the row as the registry takes it."""
        return ProviderRow(
            slug=slug,
            name=self.name,
            codec=self.codec,
            transport=self.transport,
            base_url=self.base_url,
            region=self.region,
            key=self.key.reference if self.key else None,
            auth=self.auth,
            project=self.project,
            location=self.location,
            dialect=self.dialect,
        )


class EndpointSection(EndSection):
    """One provider's offer of a model."""

    provider: Slug
    upstream: Annotated[str, StringConstraints(min_length=1, max_length=256)] = Field(
        description="The provider's own name of the model."
    )
    billed_as: Annotated[
        tuple[Annotated[str, StringConstraints(min_length=1, max_length=256)], ...],
        Field(max_length=32),
    ] = Field(
        default=(),
        description="Globs of the names under which its provider bills it, for `tollgate "
        "reconcile`; the upstream name, dated or with a class of tokens behind it, by default.",
    )
    max_output: Tokens | None = Field(
        default=None,
        description="Tokens of one answer here, where they are fewer than the model's.",
    )
    price: PriceSection
    overrides: Annotated[tuple[OverrideSection, ...], Field(max_length=32)] = Field(
        default=(), description="Other rates at some times or for large prompts; the last one wins."
    )
    weight: Percent | None = Field(
        default=None,
        description="Share of requests in percent. Without weights endpoints are tried in order.",
    )
    timeouts: Annotated[AttemptTimeoutsSection, Stated] | None = Field(
        default=None, description="Single keys that replace those of `defaults.timeouts`."
    )
    dialect: Annotated[Dialect, Stated] | None = Field(
        default=None, description="Single keys that replace those of the provider's dialect."
    )
    guardrail: GuardrailSection | None = None

    @property
    def schedule(self) -> PriceSchedule:
        """The price at any time and for any prompt."""
        return PriceSchedule(
            base=self.price.price,
            overrides=tuple(section.override for section in self.overrides),
        )


class VectorsSection(Strict):
    """The vectors that a model of the kind embedding makes."""

    dimensions: Dimensions = Field(
        description="Numbers of a vector, unless a request asks for less."
    )
    shorter: Literal["any"] | Annotated[tuple[Dimensions, ...], Field(max_length=64)] = Field(
        default=(), description="Smaller sizes that a request may ask for: a list, or `any`."
    )
    space: Slug | None = Field(
        default=None,
        description="A name of your own for models whose vectors can be compared. Without it a "
        "model has a space to itself, and no other one may stand in for it.",
    )

    def can_have(self, dimensions: int) -> bool:
        """Return whether a request may ask for vectors of this size."""
        if dimensions == self.dimensions:
            return True
        if self.shorter == "any":
            return dimensions < self.dimensions
        return dimensions in self.shorter


class ModelSection(SuccessionSection):
    """A model with its limits and abilities, and its endpoints in order of preference."""

    name: Sentence = Field(description="Name for people.")
    kind: WorkKind = Field(
        default="chat", description="The work that it does; each kind has its own routes."
    )
    context: Tokens = Field(
        description="Tokens of prompt and answer together; of one input for other kinds than chat."
    )
    max_output: Tokens | None = Field(
        default=None, description="Tokens of one answer; required for chat, and for no other kind."
    )
    vectors: VectorsSection | None = Field(
        default=None, description="Required for the kind embedding."
    )
    input: Annotated[tuple[Modality, ...], Field(min_length=1)] = Field(
        default=("text",), description="Modalities that a message may have."
    )
    makes: Annotated[tuple[OutputModality, ...], Field(min_length=1)] = Field(
        default=("text",), description="Content that an answer of the kind chat may have."
    )
    supports: tuple[Capability, ...] = ()
    endpoints: Annotated[tuple[EndpointSection, ...], Field(min_length=1, max_length=16)]

    def vector_space(self, slug: str) -> str:
        """Return the space of its vectors; within one, models may stand in for each other."""
        vectors = self.vectors
        return slug if vectors is None else f"{vectors.space or slug} {vectors.dimensions}"

    @property
    def known_since(self) -> date:
        """The day of its release, or else the first on which one of its prices was checked."""
        return self.released or min(endpoint.price.checked for endpoint in self.endpoints)


class AliasSection(Strict):
    """Another name for a model, a route or an alias."""

    to: Name
    sunset: Day | None = Field(
        default=None, description="Day after which the check warns that the alias is still there."
    )


class BudgetSection(Strict):
    """The dollars that each key of a tier may spend in a period."""

    usd: Dollars
    per: Period


class KeyTierSection(Strict):
    """Limits of every key of a tier, beside the key's own: the stricter one holds."""

    models: Annotated[tuple[Glob, ...], Field(min_length=1, max_length=256)] = Field(
        default=("*",), description="Globs of models, aliases and routes that a key may name."
    )
    rpm: Annotated[int, Field(ge=1, le=1_000_000)] | None = Field(
        default=None, description="Requests per minute; bursts may be twice as large."
    )
    max_cost_usd_per_request: Dollars | None = Field(
        default=None, description="Highest cost that one request may turn out to have."
    )
    budget: BudgetSection | None = None

    @property
    def limits(self) -> TierLimits | None:
        """The limits that the ledger holds each key to; None without any."""
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
    """The sections of every file, but for the models."""

    version: Literal[1]
    providers: Mapping[Slug, ProviderSection] = Field(
        default={}, description="Rows by a slug of your own."
    )
    aliases: Mapping[Name, AliasSection] = Field(
        default={}, description="Other names, by the name that a caller writes."
    )
    routes: Mapping[Name, RouteSection] = Field(
        default={}, description="Chains of models, by the name that a caller writes."
    )
    key_tiers: Mapping[Slug, KeyTierSection] = Field(
        default={}, description="Limits that keys share, by the tier that a key names."
    )


class IncludedFile(_NamedSections):
    """A file that adds providers, models, names and tiers to the main one."""

    models: Mapping[ModelSlug, ModelSection] = Field(
        default={}, description="Models by `author/model`."
    )


ATTRIBUTIONS_MAX: Final = 4
# Labels of keys, which an operator sets, and other names that spending is grouped by.
_TAKEN_LABELS: Final = frozenset(
    {"day", "environment", "key", "member", "model", "provider", "team"}
)
# Headers whose values must never be stored.
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
# A string and no section of its own: a function's start makes no model for it.
AttributionSource = Annotated[
    str,
    StringConstraints(pattern=r"^(header:[a-z0-9-]{1,64}|metadata:[A-Za-z0-9_.-]{1,64})$"),
    AfterValidator(_check_source),
]


class _MainSections(Strict):
    """The sections that only the main file has, but for those that few requests need."""

    defaults: DefaultsSection = Field(default_factory=DefaultsSection)
    billing: BillingSection = Field(default_factory=BillingSection)
    attribution: Annotated[
        Mapping[AttributionLabel, AttributionSource], Field(max_length=ATTRIBUTIONS_MAX)
    ] = Field(
        default={},
        description="Labels of records that callers state about themselves, by the label's name: "
        "`header:` and a header in lower case, or `metadata:` and a name in the body's metadata.",
    )


class MainFile(_MainSections, IncludedFile):
    """The main file, but for the sections that few requests need."""


class CompiledRouting(_MainSections, _NamedSections):
    """The compiled form as functions read it at their start: also of a catalog published earlier.

    The models and the sections `plugins` and `server_tools` are not among these: each is read
    at its first use.
    """
