"""Tokens and routing trace of a generation in the api; `tollgate plan` reads both back."""

from decimal import Decimal

from pydantic import BaseModel, ConfigDict

from tollgate.core.request import Capability, Modality, Need, ProviderSort, WorkKind


class _Mirror(BaseModel):
    """A copy of a core struct, field by field."""

    model_config = ConfigDict(from_attributes=True)


class TokensObject(_Mirror):
    """Tokens by price class, and counts of other units; null if the provider reported nothing."""

    uncached_input_tokens: int | None
    cache_read_input_tokens: int | None
    cache_write_5m_input_tokens: int | None
    cache_write_1h_input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    audio_input_tokens: int | None
    cache_read_audio_input_tokens: int | None
    audio_output_tokens: int | None
    image_input_tokens: int | None
    image_output_tokens: int | None
    images: int | None
    web_searches: int | None
    search_units: int | None
    audio_seconds: int | None
    characters: int | None
    text_units: int | None


class PriceCeilingObject(_Mirror):
    """The highest price that a caller accepts: USD per million tokens, and per request."""

    input: Decimal | None
    output: Decimal | None
    request: Decimal | None


class PreferencesObject(_Mirror):
    """The routing preferences of the request."""

    models: tuple[str, ...]
    order: tuple[str, ...]
    only: tuple[str, ...]
    ignore: tuple[str, ...]
    fallbacks: bool
    require_parameters: bool
    sort: ProviderSort | None
    price_max: PriceCeilingObject | None
    session_id: str | None


class PromptObject(_Mirror):
    """The size of one of several prompts."""

    estimate: int
    most: int


class UnitsObject(_Mirror):
    """The size of work on inputs, in units other than text tokens."""

    media_tokens: int
    output_tokens: int
    images: int
    search_units: int
    audio_seconds: int
    characters: int
    text_units: int


class PictureObject(_Mirror):
    """The form of requested pictures; null leaves the choice to the provider."""

    size: str | None
    quality: str | None


class RoundsObject(_Mirror):
    """Upper bounds of the rounds of a generation with tools that the gateway runs."""

    rounds_max: int
    result_tokens: int
    fees_nano_usd: int
    provider_searches_max: int


class DocumentsObject(_Mirror):
    """The documents that the gateway read for endpoints that cannot read them."""

    types: tuple[str, ...]
    tokens_min: int
    pages: int
    always: bool


class TraceObject(_Mirror):
    """The planner's view of a request, without any of the request's text."""

    requested_model: str
    route: str | None
    rule: int | None
    draw_key_hash: str
    tier: str | None
    capabilities: tuple[Capability, ...]
    estimated_input_tokens: int
    output_tokens_max: int | None
    metadata: dict[str, str]
    metadata_read: tuple[str, ...]
    modalities: tuple[Modality, ...]
    needs: tuple[Need, ...]
    input_tokens_min: int
    input_tokens_max: int
    choices: int
    prompts: tuple[PromptObject, ...]
    parameters: tuple[str, ...]
    kind: WorkKind
    inputs: int
    dimensions: int | None
    units: UnitsObject | None
    units_max: UnitsObject | None
    picture: PictureObject | None
    documents: DocumentsObject | None
    reads_documents: bool
    preferences: PreferencesObject | None
    rounds: RoundsObject | None
    key_models: tuple[str, ...] | None
    level_models: tuple[tuple[str, ...], ...]
    fallbacks: bool
