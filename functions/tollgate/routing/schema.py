"""What routing.yaml may say, and what its compiled form says: one set of strict models.

Nothing here reads a file: `load` does that on a laptop or in CI, `catalog` reads the compiled form
in a function.
"""

from collections.abc import Mapping
from decimal import Decimal
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from tollgate.core.cooldown import CooldownPolicy
from tollgate.core.limits import Period, TierLimits
from tollgate.core.money import nano_usd
from tollgate.core.request import Capability, Modality
from tollgate.core.secret import SecretReference
from tollgate.providers.base import Auth, ProviderRow, Timeouts
from tollgate.providers.dialect import Dialect
from tollgate.routing.chains import GuardrailSection, RetrySection, RouteSection
from tollgate.routing.price import PriceSchedule
from tollgate.routing.price_sections import OverrideSection, PriceSection
from tollgate.routing.scalars import (
    BaseUrl,
    Day,
    Dollars,
    FileGlob,
    Glob,
    GoogleName,
    Interval,
    ModelSlug,
    Name,
    Percent,
    Region,
    Seconds,
    SecretName,
    Sentence,
    Slug,
    Stated,
    Strict,
    Tokens,
    VariableName,
)

CodecName = Literal["openai_chat", "openai_responses", "anthropic", "bedrock", "gemini"]
TransportName = Literal[
    "http_sse", "bedrock_runtime", "bedrock_invoke", "sagemaker_runtime", "simulator"
]


class AttemptTimeoutsSection(Strict):
    """Limits of one attempt."""

    connect_s: Seconds = 10.0
    first_token_s: Seconds = 120.0
    idle_s: Seconds = 120.0

    @property
    def attempt(self) -> Timeouts:
        """The limits that hold for each attempt."""
        return Timeouts(
            connect_s=self.connect_s, first_token_s=self.first_token_s, idle_s=self.idle_s
        )


class TimeoutsSection(AttemptTimeoutsSection):
    """Limits of one attempt, and of a whole answer that is not streamed."""

    non_streamed_total_s: Seconds = 285.0


class CooldownSection(Strict):
    """When an endpoint rests: after so many failures within that time, for so long."""

    after_failures: Annotated[int, Field(ge=1, le=100)] = 3
    within_s: Interval = 60.0
    rest_s: Seconds = 30.0

    @property
    def policy(self) -> CooldownPolicy:
        """The policy as the stores take it."""
        return CooldownPolicy(
            after_failures=self.after_failures, within_s=self.within_s, rest_s=self.rest_s
        )


class DefaultsSection(Strict):
    """What holds where nothing else is said.

    `hold_output_tokens` bounds the cost of a request without a limit of its own; the provider is
    not clamped by it. `early_commit_after_s: 0` never commits early.
    """

    timeouts: TimeoutsSection = Field(default_factory=TimeoutsSection)
    retry: RetrySection = Field(default_factory=RetrySection)
    cooldown: CooldownSection = Field(default_factory=CooldownSection)
    hold_output_tokens: Tokens = 4096
    early_commit_after_s: Seconds = 10.0
    keep_alive_s: Interval = 15.0


class BillingSection(Strict):
    """How dollars are shown to callers, and who may spend them.

    `positive` admits a request while anything is left; `covered` wants its highest cost covered.
    """

    admission: Literal["positive", "covered"] = "positive"
    credits_per_usd: Annotated[Dollars, Field(gt=0)] = Decimal(1)


class KeySection(Strict):
    """Where a provider's key lives; never the key."""

    secret: SecretName | None = None
    env: VariableName | None = None

    @property
    def reference(self) -> SecretReference:
        """The reference as the transports take it."""
        return SecretReference(env=self.env, secret=self.secret)


class ProviderSection(Strict):
    """A provider is a row: a codec, a transport, and where to reach it.

    `project` and `location` say where in Google Cloud its models are, for `auth: google`.
    `data_policy` names how it treats prompts; a chain may not lead from one policy to another.
    """

    codec: CodecName
    transport: TransportName
    base_url: BaseUrl | None = None
    region: Region | None = None
    key: KeySection | None = None
    auth: Auth = "bearer"
    project: GoogleName | None = None
    location: GoogleName | None = None
    data_policy: Slug | None = None
    dialect: Dialect = Field(default_factory=Dialect)

    def row(self, slug: str) -> ProviderRow:
        """The row as the registry takes it."""
        return ProviderRow(
            slug=slug,
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


class EndpointSection(Strict):
    """One provider's offer of a model, under the provider's own name for it.

    With a `weight` the endpoints of a model are drawn, else they are tried in order. `timeouts` and
    `dialect` replace single keys of the defaults and of the provider's row.
    """

    provider: Slug
    upstream: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    price: PriceSection
    overrides: Annotated[tuple[OverrideSection, ...], Field(max_length=32)] = ()
    weight: Percent | None = None
    timeouts: Annotated[AttemptTimeoutsSection, Stated] | None = None
    dialect: Annotated[Dialect, Stated] | None = None
    guardrail: GuardrailSection | None = None

    @property
    def schedule(self) -> PriceSchedule:
        """The price at any time and for any prompt."""
        return PriceSchedule(
            base=self.price.price,
            overrides=tuple(section.override for section in self.overrides),
        )


class ModelSection(Strict):
    """The facts of a model, and who serves it in order of preference."""

    name: Sentence
    context: Tokens
    max_output: Tokens
    input: Annotated[tuple[Modality, ...], Field(min_length=1)] = ("text",)
    supports: tuple[Capability, ...] = ()
    endpoints: Annotated[tuple[EndpointSection, ...], Field(min_length=1, max_length=16)]


class AliasSection(Strict):
    """Another name for a model, a route or an alias, until `sunset` if that is said."""

    to: Name
    sunset: Day | None = None


class BudgetSection(Strict):
    """What keys of a tier may spend, each."""

    usd: Dollars
    per: Period


class KeyTierSection(Strict):
    """What holds for every key of a tier beside the key's own limits: the narrower one counts.

    `models` are globs; `rpm` is requests per minute.
    """

    models: Annotated[tuple[Glob, ...], Field(min_length=1, max_length=256)] = ("*",)
    rpm: Annotated[int, Field(ge=1, le=1_000_000)] | None = None
    max_cost_usd_per_request: Dollars | None = None
    budget: BudgetSection | None = None

    @property
    def limits(self) -> TierLimits | None:
        """What the ledger holds each key to; None if that is nothing."""
        if self.rpm is None and self.budget is None:
            return None
        if self.budget is None:
            return TierLimits(requests_per_minute=self.rpm)
        return TierLimits(
            requests_per_minute=self.rpm,
            budget_nano_usd=nano_usd(self.budget.usd),
            budget_period=self.budget.per,
        )


class DevSection(Strict):
    """What only `tollgate dev` and `tollgate check` load."""

    include: tuple[FileGlob, ...] = ()


class IncludedFile(Strict):
    """A file that adds providers, models, names and tiers to the main one."""

    version: Literal[1]
    providers: Mapping[Slug, ProviderSection] = {}
    models: Mapping[ModelSlug, ModelSection] = {}
    aliases: Mapping[Name, AliasSection] = {}
    routes: Mapping[Name, RouteSection] = {}
    key_tiers: Mapping[Slug, KeyTierSection] = {}


class Routing(IncludedFile):
    """The whole file, or its compiled form, in which everything is written out."""

    defaults: DefaultsSection = Field(default_factory=DefaultsSection)
    billing: BillingSection = Field(default_factory=BillingSection)


class CompiledRouting(Routing):
    """The compiled form as functions read it: also that of a catalog published earlier."""

    # Earlier versions wrote these two sections into every catalog, with nothing in them.
    plugins: Mapping[str, object] = Field(default={}, max_length=0, exclude=True)
    server_tools: Mapping[str, object] = Field(default={}, max_length=0, exclude=True)


class RoutingFile(Routing):
    """routing.yaml as people write it; `include` are globs of files beside it."""

    include: tuple[FileGlob, ...] = ()
    dev: DevSection = Field(default_factory=DevSection)
