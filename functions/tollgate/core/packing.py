"""Values of ours as JSON and back: what is kept of an answer must come out as it went in."""

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import fields
from pydantic_core import from_json, to_json

from tollgate.core import content, events, generation, request, usage

_TYPES: Final[Mapping[str, type]] = {
    name: value
    for module in (content, events, generation, request, usage)
    for name, value in vars(module).items()
    if isinstance(value, type) and issubclass(value, Struct)
}
# Every object of the JSON has one of these, so that no value can be taken for another's wrapping.
_TYPE, _JSON, _DECIMAL = "$", "j", "d"


def packed(value: object) -> bytes:
    """A value made of our structs, tuples, decimals and JSON."""
    return to_json(_pack(value))


def unpacked(text: bytes) -> object:
    """The value that `packed` was given, lists as tuples; ValueError if it is none of ours."""
    return _unpack(from_json(text))


def _pack(value: object) -> object:
    if isinstance(value, Struct):
        packed_fields = {each.name: _pack(getattr(value, each.name)) for each in fields(value)}
        return {_TYPE: type(value).__name__, **packed_fields}
    if isinstance(value, Mapping):
        return {_JSON: dict(value)}
    if isinstance(value, Decimal):
        return {_DECIMAL: str(value)}
    if isinstance(value, tuple | list):
        return [_pack(each) for each in value]
    return value


def _unpack(value: Any) -> object:
    if isinstance(value, list):
        return tuple(_unpack(each) for each in value)
    if not isinstance(value, dict):
        return value
    if _JSON in value:
        return value[_JSON]
    if _DECIMAL in value:
        return Decimal(value[_DECIMAL])
    name = value.pop(_TYPE, None)
    if name not in _TYPES:
        raise ValueError(f"not a packed value: {name!r}")
    return _TYPES[name](**{field: _unpack(each) for field, each in value.items()})
