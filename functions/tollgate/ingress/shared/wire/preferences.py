"""The routing preferences of a request, in OpenRouter's fields.

https://openrouter.ai/docs/features/provider-routing (2026-11-21). A preference that the gateway
cannot guarantee (where data goes, which weights are served) is refused, not ignored.
"""

import re
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from tollgate.core.request import ProviderSort
from tollgate.ingress.shared.wire.request_model import Name, Wire

NAMES_MAX: Final = 32
_DOLLARS_MAX: Final = 1_000_000
_DIGITS_MAX: Final = 32
_PRICE: Final = re.compile(r"[0-9]+(\.[0-9]+)?([eE]-?[0-9]{1,2})?", re.ASCII)

Names = Annotated[list[Name], Field(max_length=NAMES_MAX)]
_Nothing = Annotated[list[Any], Field(max_length=0)]


def _exact(value: object) -> object:
    """Convert a price, given as text or number, to the exact decimal that the caller wrote."""
    if isinstance(value, int | float | str) and not isinstance(value, bool):
        written = str(value)
        if len(written) <= _DIGITS_MAX and _PRICE.fullmatch(written):
            return Decimal(written)
    raise PydanticCustomError("price", "must be dollars, as a number or as text")


Dollars = Annotated[
    Decimal,
    Field(le=_DOLLARS_MAX),
    BeforeValidator(_exact),
    WithJsonSchema({"anyOf": [{"type": "number", "minimum": 0}, {"type": "string"}]}),
]


class PriceCeiling(Wire):
    """The highest acceptable prices: dollars per million tokens, and per request."""

    prompt: Dollars | None = None
    completion: Dollars | None = None
    request: Dollars | None = None


class ProviderPreferences(Wire):
    """Preferences about which providers serve a request, and in which order they are tried."""

    order: Names | None = None
    only: Names | None = None
    ignore: Names | None = None
    allow_fallbacks: bool | None = None
    require_parameters: bool | None = None
    sort: ProviderSort | None = Field(
        default=None,
        description="`throughput` and `latency` use the gateway's own measurements; endpoints "
        "without a measurement come last.",
    )
    max_price: PriceCeiling | None = None
    data_collection: Literal["allow"] | None = None
    zdr: Literal[False] | None = None
    quantizations: _Nothing | None = None
