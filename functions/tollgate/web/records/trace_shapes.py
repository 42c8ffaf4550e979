"""Tokens and routing trace of a generation in the api; `tollgate plan` reads both back."""

from collections.abc import Callable
from decimal import Decimal
from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import fields as struct_fields
from pydantic import BaseModel, ConfigDict, create_model

from tollgate.core.request import Capability, Modality, Need, ProviderSort
from tollgate.core.usage import Units, Usage
from tollgate.core.work.kinds import WorkKind

_Model = TypeVar("_Model", bound=BaseModel)


class _Mirror(BaseModel):
    """A copy of a core struct, field by field."""

    model_config = ConfigDict(from_attributes=True)


def _with_fields_of(struct: type[Struct]) -> Callable[[type[_Model]], type[_Model]]:
    """Return a decorator that adds a required field to a model for each field of a struct."""
    fields: dict[str, Any] = {each.name: (each.type, ...) for each in struct_fields(struct)}
    return lambda model: create_model(
        model.__name__, __base__=model, __module__=model.__module__, __doc__=model.__doc__, **fields
    )


@_with_fields_of(Usage)
class TokensObject(_Mirror):
    """Tokens by price class, and counts of other units; null if the provider reported nothing."""


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


@_with_fields_of(Units)
class UnitsObject(_Mirror):
    """The size of work on inputs, in units other than text tokens."""


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
