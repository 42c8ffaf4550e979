"""What a generation used and was planned by, as the api shows it; read back by a plan."""

from decimal import Decimal
from typing import Literal

from pydantic import BaseModel, ConfigDict

from tollgate.core.request import Capability, Modality


class _Mirror(BaseModel):
    """A value of ours, field by field."""

    model_config = ConfigDict(from_attributes=True)


class TokensObject(_Mirror):
    """Tokens by class, and pictures made; null for what the provider did not say."""

    uncached_input_tokens: int | None
    cache_read_input_tokens: int | None
    cache_write_5m_input_tokens: int | None
    cache_write_1h_input_tokens: int | None
    output_tokens: int | None
    reasoning_tokens: int | None
    audio_input_tokens: int | None
    cache_read_audio_input_tokens: int | None
    audio_output_tokens: int | None
    images: int | None
    web_searches: int | None


class PriceCeilingObject(_Mirror):
    """The most a caller would pay: dollars per million tokens, and per request."""

    input: Decimal | None
    output: Decimal | None
    request: Decimal | None


class PreferencesObject(_Mirror):
    """What a caller said about who should serve."""

    models: tuple[str, ...]
    order: tuple[str, ...]
    only: tuple[str, ...]
    ignore: tuple[str, ...]
    fallbacks: bool
    require_parameters: bool
    sort: Literal["price"] | None
    price_max: PriceCeilingObject | None
    session_id: str | None


class TraceObject(_Mirror):
    """What the planner saw of a request; never any of its text."""

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
    input_tokens_min: int
    input_tokens_max: int
    choices: int
    parameters: tuple[str, ...]
    preferences: PreferencesObject | None
    key_models: tuple[str, ...] | None
    fallbacks: bool
