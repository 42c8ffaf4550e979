"""The usage of generations and the input of their planner, copied from the stored structs."""

from collections.abc import Callable
from typing import Any, TypeVar, cast

from msgspec import Struct
from msgspec.structs import fields as struct_fields
from pydantic import BaseModel, ConfigDict, create_model

from tollgate.core.limits import CostCeiling
from tollgate.core.records.generation import PromptTokens, RoundsBound, RoutingTrace
from tollgate.core.request import PriceCeiling, RoutingPreferences
from tollgate.core.usage import Units, Usage
from tollgate.core.work.pictures import Picture

_Model = TypeVar("_Model", bound=BaseModel)


class _Mirror(BaseModel):
    """A copy of a core struct, field by field."""

    model_config = ConfigDict(from_attributes=True)


def _with_fields_of(struct: type[Struct]) -> Callable[[type[_Model]], type[_Model]]:
    """Return a decorator that adds a required field to a model for each field of a struct.

    A field that the model declares keeps the declared type.
    """

    def decorate(model: type[_Model]) -> type[_Model]:
        declared = model.model_fields
        fields: dict[str, Any] = {
            each.name: (declared[each.name].annotation if each.name in declared else each.type, ...)
            for each in struct_fields(struct)
        }
        mirror = create_model(
            model.__name__,
            __base__=_Mirror,
            __module__=model.__module__,
            __doc__=model.__doc__,
            **fields,
        )
        return cast(type[_Model], mirror)

    return decorate


@_with_fields_of(Usage)
class TokensObject(_Mirror):
    """Tokens by price class, and counts of other units; null if the provider reported nothing."""


@_with_fields_of(PriceCeiling)
class PriceCeilingObject(_Mirror):
    """The highest prices that a caller accepts: USD per million tokens, and per request."""


@_with_fields_of(RoutingPreferences)
class PreferencesObject(_Mirror):
    """The routing preferences of the request."""

    price_max: PriceCeilingObject | None


@_with_fields_of(PromptTokens)
class PromptObject(_Mirror):
    """The size of one of several prompts."""


@_with_fields_of(Units)
class UnitsObject(_Mirror):
    """The size of input work, in units other than text tokens."""


@_with_fields_of(Picture)
class PictureObject(_Mirror):
    """The size and quality of requested images; null leaves the choice to the provider."""


@_with_fields_of(RoundsBound)
class RoundsObject(_Mirror):
    """Upper bounds of the rounds of a generation with tools that the gateway runs."""


class DocumentsObject(_Mirror):
    """The documents that the gateway read for endpoints that cannot read them."""

    types: tuple[str, ...]
    tokens_min: int
    pages: int
    always: bool


@_with_fields_of(CostCeiling)
class CeilingObject(_Mirror):
    """The highest possible cost that the request or its key stated."""


@_with_fields_of(RoutingTrace)
class TraceObject(_Mirror):
    """The facts that the planner knows about a request, without any of the request's text."""

    prompts: tuple[PromptObject, ...]
    units: UnitsObject | None
    units_max: UnitsObject | None
    picture: PictureObject | None
    documents: DocumentsObject | None
    preferences: PreferencesObject | None
    rounds: RoundsObject | None
    ceiling: CeilingObject | None
