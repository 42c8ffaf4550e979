"""Models and endpoints with OpenRouter's fields, in OpenAI's list. Prices are in USD per token."""

from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, time
from typing import Any, Final, Literal

from msgspec.structs import asdict
from pydantic import BaseModel, Field

from tollgate.core.money.amounts import plain_text
from tollgate.core.request import Modality
from tollgate.core.routing.endpoint_status import KeyFault, Speed
from tollgate.core.work.kinds import WORK_KINDS
from tollgate.providers.ports.formats import WIRE_FORMATS
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.offers import Chains, Offer
from tollgate.routing.price import Price
from tollgate.routing.price_sections import OverrideSection, RatesSection, Weekday
from tollgate.routing.schema import EndpointSection, ModelSection, ServiceTierSection
from tollgate.web.models.datacenters import Datacenter, PromptUseFields, list_datacenters
from tollgate.web.models.endpoint_status import EndpointStatus

# OpenRouter calls a document `file`; the other modalities have the same names here.
SHOWN_MODALITIES: Final[Mapping[Modality, str]] = {"pdf": "file"}
_OWNER_OF_ROUTES: Final = "tollgate"
_PER_TOKEN_EXPONENT: Final = -6
_PER_TEXT_UNIT_EXPONENT: Final = -3
_BY_CAPABILITY: Final = {
    "tools": frozenset({"tool_choice", "tools"}),
    "structured_output": frozenset({"structured_outputs"}),
    "reasoning": frozenset({"include_reasoning", "reasoning", "reasoning_effort"}),
}
# Every endpoint enforces an output limit, and response formats that are not supported are emulated.
_ALWAYS: Final = frozenset({"max_completion_tokens", "max_tokens", "response_format"})


class Architecture(BaseModel):
    """Modalities of input and output; `modality` joins both, as in `text+image->text`."""

    modality: str
    input_modalities: list[str]
    output_modalities: list[str]


class RatesObject(BaseModel):
    """Rates as decimal strings in USD; null for a class without a price.

    Rates of pieces (`request`, `image`, `web_search`, `search`, `character`, `text_unit`) are per
    piece, `audio_hour` and `video_second` per hour and second, all other rates per token.
    """

    prompt: str | None = None
    completion: str | None = None
    input_cache_read: str | None = None
    input_cache_write: str | None = None
    input_cache_write_1h: str | None = None
    audio: str | None = None
    audio_output: str | None = None
    input_audio_cache: str | None = None
    request: str | None = None
    image: str | None = None
    web_search: str | None = None
    search: str | None = None
    input_image: str | None = None
    output_image: str | None = None
    audio_hour: str | None = None
    character: str | None = None
    text_unit: str | None = None
    video_second: str | None = None


class Pricing(RatesObject):
    """The rates that currently apply to a small prompt."""

    prompt: str
    completion: str


class PricingOverride(BaseModel):
    """Rates that replace the base rates while all of these conditions hold."""

    since: date | None = None
    until: date | None = None
    prompt_tokens_over: int | None = None
    utc_window: str | None = None
    utc_days: tuple[Weekday, ...] | None = None
    image_size: str | None = None
    image_over: str | None = Field(default=None, description="For wider or higher images.")
    image_quality: str | None = None
    pricing: RatesObject


class TopProvider(BaseModel):
    """Limits of the first endpoint."""

    context_length: int
    max_completion_tokens: int | None = None
    is_moderated: bool = False


class ModelObject(BaseModel):
    """A model, an alias or a route, in OpenAI's and OpenRouter's format.

    An alias has the fields of its target. A route has the prices of its first model, the limits of
    its largest one, and everything that any of its models accepts. Prices are those of the first
    endpoint.
    """

    id: str
    canonical_slug: str = Field(description="The model or route that an alias stands for.")
    object: Literal["model"] = "model"
    kind: Literal["model", "alias", "route"] = "model"
    models: list[str] | None = Field(default=None, description="Models of a route, in order.")
    description: str | None = None
    created: int = Field(description="Unix time of the release, or of the model's first catalog.")
    owned_by: str
    name: str
    context_length: int
    max_completion_tokens: int | None = Field(
        default=None, description="Absent for models without answers."
    )
    dimensions: int | None = Field(
        default=None, description="Size of an embedding model's vectors."
    )
    architecture: Architecture
    pricing: Pricing
    top_provider: TopProvider
    supported_parameters: list[str]
    # OpenRouter's SDKs require the next four fields.
    default_parameters: dict[str, float] = Field(
        default_factory=dict, description="Always empty; the provider's defaults apply."
    )
    per_request_limits: dict[str, int]
    supported_voices: list[str] = Field(
        default_factory=list, description="Always empty; use the voices of the provider."
    )
    links: dict[Literal["details"], str] = Field(description="The path of the model's endpoints.")
    deprecation_date: date | None = Field(
        default=None, description="The day from which the provider advises against the model."
    )
    expiration_date: date | None = Field(default=None, description="UTC day of retirement.")
    successor: str | None = Field(default=None, description="The model to use instead.")
    datacenters: list[Datacenter] | None = Field(
        default=None, description="Known locations of the model's endpoints."
    )


class EndpointObject(PromptUseFields):
    """A provider's offer of a model; `status` is 0, or -1 in a cooldown or without a usable key."""

    name: str
    provider_name: str
    tag: str
    context_length: int
    max_completion_tokens: int | None = None
    pricing: Pricing
    pricing_overrides: list[PricingOverride]
    service_tiers: dict[str, Pricing] = Field(description="Current rates of other tiers.")
    supported_parameters: list[str]
    status: Literal[0, -1]
    latency_ms: int | None = Field(default=None, description="Time to the first token.")
    tokens_per_s: float | None = Field(default=None, description="Speed of whole answers.")
    key: KeyFault | None = Field(default=None, description="Fault of the provider's key.")
    key_seen_at: datetime | None = Field(default=None, description="The last request with it.")
    deprecation_date: date | None = None
    expiration_date: date | None = None
    datacenter: Datacenter | None = Field(default=None, description="Location, if it is known.")


class ModelEndpoints(BaseModel):
    """A model with every endpoint that may serve the model, in order of preference."""

    id: str
    name: str
    created: int
    architecture: Architecture
    endpoints: list[EndpointObject]


class EndpointsReply(BaseModel):
    """The endpoints of one model."""

    data: ModelEndpoints


def offers_of(catalog: Catalog, slug: str) -> tuple[Offer, ...]:
    """Return the offers of a model, one for each endpoint, in order of preference."""
    chain = Chains(catalog).get(slug)
    return () if chain is None else chain.offers[slug]


def model_object(catalog: Catalog, slug: str, *, now_s: float) -> ModelObject:
    """Build the object of a model.

    The supported parameters are those that at least one endpoint accepts.
    """
    model = catalog.models[slug]
    accepted = (_parameters(catalog, offer) for offer in offers_of(catalog, slug))
    return ModelObject(
        id=slug,
        canonical_slug=slug,
        created=_created_s(model),
        owned_by=slug.partition("/")[0],
        name=model.name,
        context_length=model.context,
        max_completion_tokens=model.max_output,
        dimensions=model.vectors.dimensions if model.vectors else None,
        architecture=_architecture(model),
        pricing=_pricing(model.endpoints[0], now_s),
        top_provider=TopProvider(
            context_length=model.context, max_completion_tokens=model.max_output
        ),
        supported_parameters=sorted(frozenset().union(*accepted)),
        per_request_limits=_request_limits(model.context, model.max_output),
        links={"details": f"/api/v1/models/{slug}/endpoints"},
        deprecation_date=model.deprecated,
        expiration_date=model.retires,
        successor=model.successor,
        datacenters=list_datacenters(catalog, model),
    )


def name_object(catalog: Catalog, name: str, usable: Sequence[str], *, now_s: float) -> ModelObject:
    """Build the object of a model, route or alias from the models that the caller may use."""
    target = catalog.target(name)
    route = catalog.routes.get(target)
    found = [model_object(catalog, slug, now_s=now_s) for slug in usable]
    shown = found[0]
    if route is not None:
        inputs = dict.fromkeys(
            kind for model in found for kind in model.architecture.input_modalities
        )
        limits = TopProvider(
            context_length=max(model.context_length for model in found),
            max_completion_tokens=max(
                (model.max_completion_tokens for model in found if model.max_completion_tokens),
                default=None,
            ),
        )
        parameters = frozenset().union(*(model.supported_parameters for model in found))
        shown = shown.model_copy(
            update={
                "canonical_slug": target,
                "kind": "route",
                "models": list(usable),
                "description": route.description,
                "created": max(model.created for model in found),
                "owned_by": _OWNER_OF_ROUTES,
                "name": target,
                "context_length": limits.context_length,
                "max_completion_tokens": limits.max_completion_tokens,
                "architecture": _join_modalities(
                    list(inputs), shown.architecture.output_modalities
                ),
                "top_provider": limits,
                "per_request_limits": _request_limits(
                    limits.context_length, limits.max_completion_tokens
                ),
                "supported_parameters": sorted(parameters),
                "datacenters": list_datacenters(
                    catalog, *(catalog.models[slug] for slug in usable)
                ),
                # The first model may have retired, while the route still exists.
                "deprecation_date": None,
                "expiration_date": None,
                "successor": None,
            }
        )
    return shown.model_copy(update={"id": name, "kind": shown.kind if name == target else "alias"})


def _request_limits(context: int, max_output: int | None) -> dict[str, int]:
    return {"prompt_tokens": context, "completion_tokens": max_output or 0}


def model_endpoints(
    catalog: Catalog, slug: str, status: EndpointStatus, *, now_s: float
) -> ModelEndpoints:
    """Build the list of a model's endpoints."""
    model = catalog.models[slug]
    targets = [offer.attempt.target for offer in offers_of(catalog, slug)]
    offers = zip(model.endpoints, offers_of(catalog, slug), targets, strict=True)
    return ModelEndpoints(
        id=slug,
        name=model.name,
        created=_created_s(model),
        architecture=_architecture(model),
        endpoints=[
            EndpointObject(
                name=f"{endpoint.provider} | {slug}",
                provider_name=endpoint.provider,
                tag=endpoint.provider,
                context_length=model.context,
                max_completion_tokens=endpoint.max_output or model.max_output,
                pricing=_pricing(endpoint, now_s),
                pricing_overrides=[_override(section) for section in endpoint.overrides],
                service_tiers={
                    name: _pricing(tier, now_s) for name, tier in endpoint.service_tiers.items()
                },
                supported_parameters=sorted(_parameters(catalog, offer)),
                status=0 if status.is_ready(target) else -1,
                **_measured(status.speeds.get(target.endpoint_id)),
                **status.key_fields(target),
                deprecation_date=endpoint.deprecated,
                expiration_date=endpoint.retires,
                datacenter=Datacenter.of(catalog, endpoint),
                **asdict(offer.attempt.prompt_use),
            )
            for endpoint, offer, target in offers
        ],
    )


def _measured(speed: Speed | None) -> dict[str, Any]:
    if speed is None:
        return {}
    per_s = speed.tokens_per_s
    return {"latency_ms": speed.latency_ms, "tokens_per_s": per_s and round(per_s, 1)}


def _architecture(model: ModelSection) -> Architecture:
    inputs = [SHOWN_MODALITIES.get(modality, modality) for modality in model.input]
    outputs = model.makes if model.kind == "chat" else (WORK_KINDS[model.kind].makes,)
    return _join_modalities(inputs, [*outputs])


def _join_modalities(inputs: list[str], outputs: list[str]) -> Architecture:
    return Architecture(
        modality=f"{'+'.join(inputs)}->{'+'.join(outputs)}",
        input_modalities=inputs,
        output_modalities=outputs,
    )


def _created_s(model: ModelSection) -> int:
    return int(datetime.combine(model.known_since, time(), UTC).timestamp())


def _parameters(catalog: Catalog, offer: Offer) -> frozenset[str]:
    """Return the parameters that an endpoint accepts and for which its format has a field."""
    target = offer.attempt.target
    kind = catalog.models[target.model].kind
    if kind != "chat":
        return WORK_KINDS[kind].parameters
    wire_format = WIRE_FORMATS[catalog.providers[target.provider].codec]
    accepted = wire_format.parameters - set(target.dialect.refuses)
    if "tools" not in target.supports:
        accepted -= {"parallel_tool_calls"}
    able = (_BY_CAPABILITY.get(capability, frozenset()) for capability in target.supports)
    return accepted.union(_ALWAYS, *able)


def _pricing(endpoint: EndpointSection | ServiceTierSection, now_s: float) -> Pricing:
    return Pricing.model_validate(_rates(endpoint.schedule.at(now_s, 0)))


def _override(section: OverrideSection) -> PricingOverride:
    return PricingOverride(
        since=section.when.since,
        until=section.when.until,
        prompt_tokens_over=section.when.prompt_tokens_over,
        utc_window=section.when.utc_window,
        utc_days=section.when.utc_days,
        image_size=section.when.image_size,
        image_over=section.when.image_over,
        image_quality=section.when.image_quality,
        pricing=RatesObject.model_validate(_rates(section.price)),
    )


def _rates(price: Price | RatesSection) -> dict[str, str | None]:
    per_token = {
        "prompt": price.input,
        "completion": price.output,
        "input_cache_read": price.cache_read,
        "input_cache_write": price.cache_write,
        "input_cache_write_1h": price.cache_write_1h,
        "audio": price.audio_input,
        "audio_output": price.audio_output,
        "input_audio_cache": price.cache_read_audio,
        "input_image": price.image_input,
        "output_image": price.image_output,
        "character": price.characters,
    }
    per_piece = {
        "audio_hour": price.audio_hour,
        "request": price.request,
        "image": price.image,
        "web_search": price.web_search,
        "search": price.search,
        "video_second": price.video_second,
        "text_unit": price.text_units and price.text_units.scaleb(_PER_TEXT_UNIT_EXPONENT),
    }
    return {
        **{
            name: None if rate is None else plain_text(rate.scaleb(_PER_TOKEN_EXPONENT))
            for name, rate in per_token.items()
        },
        **{name: None if rate is None else plain_text(rate) for name, rate in per_piece.items()},
    }
