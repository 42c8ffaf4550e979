"""The types of single values in routing.yaml, and the base class of its sections.

The names of keys include the unit. A starting function reads thousands of decimals and dates from
the compiled form, so pydantic's core parses these without calling Python.
"""

from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Annotated, Final, TypeVar

from msgspec import Struct
from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    GetCoreSchemaHandler,
    PlainSerializer,
    StringConstraints,
    WithJsonSchema,
)
from pydantic_core import CoreSchema

from tollgate.core.addresses import DOMAIN, DOMAIN_CHARACTERS_MAX
from tollgate.core.secret import SecretReference

_DOLLARS_MAX: Final = Decimal(1_000_000)
_FRACTION_DIGITS_MAX: Final = 12
_SLUG: Final = r"^[a-z0-9][a-z0-9._-]*$"
MODEL_SLUG: Final = r"^[a-z0-9][a-z0-9._-]*/[a-z0-9][a-z0-9._:-]*$"
_NAME: Final = r"^[A-Za-z0-9][A-Za-z0-9._:/-]*$"


def _decimal(value: object) -> object:
    """Convert an integer, decimal or string from the YAML file to an exact decimal."""
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
    """Return a number without an exponent or trailing zeros, so that its spelling does
    not matter.
    """
    text = f"{number:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def _float(value: object) -> object:
    return float(value) if isinstance(value, Decimal) else value


def _date(value: object) -> object:
    try:
        return date.fromisoformat(value) if isinstance(value, str) else value
    except ValueError as unreadable:
        raise ValueError("must be a date such as 2026-11-21") from unreadable


def midnight_s(day: date) -> int:
    """Return the Unix time at which a UTC day begins."""
    return int(datetime.combine(day, time(), UTC).timestamp())


class _InJson(Struct, frozen=True, eq=False):
    """An annotation that gives a type a different schema for JSON (the compiled form)."""

    schema: CoreSchema

    def __get_pydantic_core_schema__(
        self, source: object, handler: GetCoreSchemaHandler
    ) -> CoreSchema:
        return {
            "type": "json-or-python",
            "json_schema": self.schema,
            "python_schema": handler(source),
        }


# Exact dollars per million tokens, unless the name or the description of the key has another unit.
Dollars = Annotated[
    Decimal,
    BeforeValidator(_decimal),
    _InJson(
        {
            "type": "decimal",
            "ge": Decimal(0),
            "le": _DOLLARS_MAX,
            "decimal_places": _FRACTION_DIGITS_MAX,
        }
    ),
    PlainSerializer(_decimal_text, return_type=str),
    WithJsonSchema({"type": "number", "minimum": 0, "maximum": int(_DOLLARS_MAX)}),
]
# Lambda ends every invocation after 900 s.
Seconds = Annotated[float, Field(ge=0, le=900), BeforeValidator(_float)]
# Time limit for a tool run, which is also limited by the request's remaining time.
RunSeconds = Annotated[float, Field(ge=1, le=300), BeforeValidator(_float)]
# Period in which something is counted or repeated; cannot be zero.
Interval = Annotated[float, Field(ge=1, le=900), BeforeValidator(_float)]
Tokens = Annotated[int, Field(ge=1, le=100_000_000)]
# Number of dimensions of a vector.
Dimensions = Annotated[int, Field(ge=1, le=65_536)]
Day = Annotated[date, BeforeValidator(_date), _InJson({"type": "date"})]
Sentence = Annotated[str, StringConstraints(min_length=1, max_length=500)]
Slug = Annotated[str, StringConstraints(pattern=_SLUG, max_length=64)]
ModelSlug = Annotated[str, StringConstraints(pattern=MODEL_SLUG, max_length=128)]
# Name of an alias or route, which callers send as `model`.
Name = Annotated[str, StringConstraints(pattern=_NAME, max_length=128)]
# Id of a workspace, team or key, as the gateway's API returns it.
Id = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9_-]+$", max_length=128)]
SecretName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9/_+=.@-]+$", max_length=256)]
VariableName = Annotated[str, StringConstraints(pattern=r"^[A-Z][A-Z0-9_]*$", max_length=128)]
Region = Annotated[str, StringConstraints(pattern=r"^[a-z]{2}(-[a-z]+)+-[0-9]$", max_length=32)]
Country = Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}$")]
# Google project ids and location names, which become part of a URL path.
GoogleName = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9:.-]*$", max_length=64)]
# Base URL without credentials, query or trailing slash, because paths are appended to it. Only one
# spelling of a host is valid: in ASCII, without a dot at the end.
_HOST: Final = r"([A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])"
BaseUrl = Annotated[
    str,
    StringConstraints(
        pattern=rf"^https?://{_HOST}(:[0-9]{{1,5}})?(/[^\s/?#@\\]+)*$", max_length=256
    ),
]
Domain = Annotated[str, StringConstraints(pattern=DOMAIN, max_length=DOMAIN_CHARACTERS_MAX)]
Domains = Annotated[tuple[Domain, ...], Field(max_length=256)]
Private = Annotated[
    bool | None,
    Field(
        description="True if `base_url` is in your own network, where a key may be sent over http."
    ),
]
# Time of day in UTC; the end is not included. If the end is before the start, the window spans
# midnight.
UtcWindow = Annotated[
    str, StringConstraints(pattern=r"^([01][0-9]|2[0-3]):[0-5][0-9]-([01][0-9]|2[0-3]):[0-5][0-9]$")
]
# Width and height of an image in pixels.
ImageSize = Annotated[str, StringConstraints(pattern=r"^[1-9][0-9]{1,4}x[1-9][0-9]{1,4}$")]
Percent = Annotated[int, Field(ge=0, le=100)]
Glob = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9*?\[\]!._:/-]+$", max_length=128)]
FileGlob = Annotated[str, StringConstraints(min_length=1, max_length=256)]


class Strict(BaseModel):
    """The base class of sections, which refuses unknown keys and converts no values."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, defer_build=True)


class KeySection(Strict):
    """A reference to a provider's key, not the key itself."""

    secret: SecretName | None = None
    """Name of a secret in AWS Secrets Manager."""
    env: VariableName | None = None
    """Name of an environment variable, which takes precedence over the secret."""

    @property
    def reference(self) -> SecretReference:
        """Return the reference in the type that transports use."""
        return SecretReference(env=self.env, secret=self.secret)


_Section = TypeVar("_Section", bound=BaseModel)


def _stated(section: BaseModel) -> dict[str, object]:
    """Return only the keys that the file sets; the others come from the section that is
    overridden.
    """
    return section.model_dump(mode="json", by_alias=True, exclude_unset=True)


# Annotation for a section whose keys override the same keys of another section: see
# `merge_section`.
Stated = PlainSerializer(_stated)


def merge_section(base: _Section, overrides: _Section | None) -> _Section:
    """Return the base section, with the keys that the file sets in `overrides` replaced."""
    if overrides is None:
        return base
    return base.model_copy(
        update={key: getattr(overrides, key) for key in overrides.model_fields_set}
    )
