"""What routing.yaml may say, and what its compiled form says: one set of strict models.

Dollars are per million tokens and exact. Units are part of a key's name. Nothing here reads a
file: `load` does that on a laptop or in CI, `catalog` reads the compiled form in a function.
"""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)

from tollgate.core.request import Capability
from tollgate.core.secret import SecretReference
from tollgate.providers.base import ProviderRow, Timeouts
from tollgate.providers.dialect import Dialect
from tollgate.routing.price import Price

_DOLLARS_MAX: Final = Decimal(1_000_000)
_FRACTION_DIGITS_MAX: Final = 12
_SLUG: Final = r"^[a-z0-9][a-z0-9._-]*$"
_MODEL_SLUG: Final = r"^[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._:-]*$"
_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._:/-]*$"


def _decimal(value: object) -> object:
    """Exact decimals from whole numbers of the YAML file and from strings of the compiled form."""
    if isinstance(value, bool) or not isinstance(value, int | str | Decimal):
        raise ValueError("must be a decimal number")
    try:
        number = Decimal(value)
    except ArithmeticError as unreadable:
        raise ValueError("must be a decimal number") from unreadable
    if not number.is_finite() or not 0 <= number <= _DOLLARS_MAX:
        raise ValueError("must be between 0 and 1000000")
    exponent = number.as_tuple().exponent
    if isinstance(exponent, int) and -exponent > _FRACTION_DIGITS_MAX:
        raise ValueError(f"must have at most {_FRACTION_DIGITS_MAX} digits after the point")
    return number


def _decimal_text(number: Decimal) -> str:
    """Plain notation without trailing zeros: how a number is spelled does not change the sha."""
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _float(value: object) -> object:
    return float(value) if isinstance(value, Decimal) else value


def _date(value: object) -> object:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as unreadable:
        raise ValueError("must be a date such as 2026-11-21") from unreadable


Dollars = Annotated[
    Decimal,
    BeforeValidator(_decimal),
    PlainSerializer(_decimal_text, return_type=str),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": int(_DOLLARS_MAX)}),
]
# The platform ends every invocation after 900 s.
Seconds = Annotated[float, Field(ge=0, le=900), BeforeValidator(_float)]
Interval = Annotated[float, Field(ge=1, le=900), BeforeValidator(_float)]
Tokens = Annotated[int, Field(ge=1, le=100_000_000)]
Day = Annotated[date, BeforeValidator(_date)]
Sentence = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Slug = Annotated[str, StringConstraints(pattern=_SLUG, max_length=64)]
ModelSlug = Annotated[str, StringConstraints(pattern=_MODEL_SLUG, max_length=128)]
Name = Annotated[str, StringConstraints(pattern=_NAME, max_length=128)]
SecretName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9/_+=.@-]+$", max_length=256)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=128)]
Region = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$", max_length=32)]
# No credentials, no query, no trailing slash: paths are appended to it.
BaseUrl = Annotated[
    str, StringConstraints(pattern=r"^https?://[^\s/?#@]+(/[^\s/?#@]+)*$", max_length=256)
]

Modality = Literal["text", "image", "audio", "video", "pdf"]
CodecName = Literal["openai_chat", "bedrock"]
TransportName = Literal["http_sse", "bedrock_runtime", "simulator"]
NextOn = Literal[
    "provider_rate_limit",
    "provider_overloaded",
    "provider_unavailable",
    "provider_timeout",
    "provider_auth",
    "context_length_exceeded",
    "content_filter",
]
NEXT_ON_DEFAULT: Final[tuple[NextOn, ...]] = (
    "provider_rate_limit",
    "provider_overloaded",
    "provider_unavailable",
    "provider_timeout",
    "provider_auth",
    "context_length_exceeded",
    "content_filter",
)


class Strict(BaseModel):
    """A section in which every key is known and no value is converted."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TimeoutsSection(Strict):
    """Limits of one attempt, and of a whole answer that is not streamed."""

    connect_s: Seconds = 10.0
    first_token_s: Seconds = 120.0
    idle_s: Seconds = 120.0
    non_streamed_total_s: Seconds = 285.0

    @property
    def attempt(self) -> Timeouts:
        """The limits that hold for each attempt."""
        return Timeouts(
            connect_s=self.connect_s, first_token_s=self.first_token_s, idle_s=self.idle_s
        )


class RetrySection(Strict):
    """How often one endpoint is tried again before the next one is."""

    retries_max: Annotated[int, Field(ge=0, le=2)] = 2
    backoff_min_s: Seconds = 0.25
    backoff_max_s: Seconds = 4.0


class DefaultsSection(Strict):
    """What holds where nothing else is said.

    `hold_output_tokens` bounds the cost of a request without a limit of its own; the provider is
    not clamped by it. `early_commit_after_s: 0` never commits early.
    """

    timeouts: TimeoutsSection = TimeoutsSection()
    retry: RetrySection = RetrySection()
    hold_output_tokens: Tokens = 4096
    early_commit_after_s: Seconds = 10.0
    keep_alive_s: Interval = 15.0


class BillingSection(Strict):
    """How dollars are shown to callers."""

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
    """A provider is a row: a codec, a transport, and where to reach it."""

    codec: CodecName
    transport: TransportName
    base_url: BaseUrl | None = None
    region: Region | None = None
    key: KeySection | None = None
    dialect: Dialect = Dialect()

    def row(self, slug: str) -> ProviderRow:
        """The row as the registry takes it."""
        return ProviderRow(
            slug=slug,
            codec=self.codec,
            transport=self.transport,
            base_url=self.base_url,
            region=self.region,
            key=self.key.reference if self.key else None,
            dialect=self.dialect,
        )


class PriceSection(Strict):
    """Dollars per million tokens, per request and per picture made, and where that was checked."""

    input: Dollars
    output: Dollars
    cache_read: Dollars | None = None
    cache_write: Dollars | None = None
    cache_write_1h: Dollars | None = None
    audio_input: Dollars | None = None
    audio_output: Dollars | None = None
    request: Dollars | None = None
    image: Dollars | None = None
    source: Sentence
    checked: Day

    @property
    def price(self) -> Price:
        """The rates as the bill takes them."""
        return Price(
            input=self.input,
            output=self.output,
            cache_read=self.cache_read,
            cache_write=self.cache_write,
            cache_write_1h=self.cache_write_1h,
            audio_input=self.audio_input,
            audio_output=self.audio_output,
            request=self.request,
            image=self.image,
        )


class EndpointSection(Strict):
    """One provider's offer of a model, under the provider's own name for it."""

    provider: Slug
    upstream: Annotated[str, StringConstraints(min_length=1, max_length=256)]
    price: PriceSection


class ModelSection(Strict):
    """The facts of a model, and who serves it in order of preference."""

    name: Sentence
    context: Tokens
    max_output: Tokens
    input: Annotated[tuple[Modality, ...], Field(min_length=1)] = ("text",)
    supports: tuple[Capability, ...] = ()
    endpoints: Annotated[tuple[EndpointSection, ...], Field(min_length=1, max_length=16)]


class AliasSection(Strict):
    """Another name for a model or a route, until `sunset` if that is said."""

    to: Name
    sunset: Day | None = None


class RouteSection(Strict):
    """A chain of models: the next one is tried on the errors of `next_on`."""

    description: Sentence
    models: Annotated[tuple[ModelSlug, ...], Field(alias="try", min_length=1, max_length=16)]
    next_on: tuple[NextOn, ...] = NEXT_ON_DEFAULT


class DevSection(Strict):
    """What only `tollgate dev` and `tollgate check` load."""

    include: tuple[Annotated[str, StringConstraints(min_length=1, max_length=256)], ...] = ()


class IncludedFile(Strict):
    """A file that adds providers, models and names to the main one."""

    version: Literal[1]
    providers: Mapping[Slug, ProviderSection] = {}
    models: Mapping[ModelSlug, ModelSection] = {}
    aliases: Mapping[Name, AliasSection] = {}
    routes: Mapping[Name, RouteSection] = {}


class Routing(IncludedFile):
    """The whole file, or its compiled form, in which everything is written out."""

    defaults: DefaultsSection = DefaultsSection()
    billing: BillingSection = BillingSection()


class RoutingFile(Routing):
    """routing.yaml as people write it."""

    dev: DevSection = DevSection()
