"""The columns of a CSV table: the fields of a JSON object that fit into one cell."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from tollgate.core.money.amounts import plain_text

_PLAIN = (str, int, Decimal, datetime, NoneType)


@cache
def csv_columns(shape: type[BaseModel]) -> tuple[str, ...]:
    """Return the names of a JSON object's fields that fit into one cell, in order.

    Objects and lists of objects are left out of the CSV.
    """
    return tuple(name for name, field in shape.model_fields.items() if _fits(field.annotation))


def csv_cells(shape: BaseModel) -> Mapping[str, str]:
    """Return a JSON object as the cells of a CSV row."""
    return {name: cell_text(getattr(shape, name)) for name in csv_columns(type(shape))}


def cell_text(value: object) -> str:
    """Return the text of a cell: exact decimals, ISO times, `name=value` joined by semicolons."""
    match value:
        case None:
            return ""
        case bool():
            return "true" if value else "false"
        case Decimal():
            return plain_text(value)
        case datetime():
            return value.isoformat().replace("+00:00", "Z")
        case Mapping():
            return ";".join(f"{name}={cell_text(item)}" for name, item in sorted(value.items()))
        case list():
            return ";".join(map(cell_text, value))
        case _:
            return str(value)


def _fits(annotation: Any) -> bool:
    """Return whether values of a type fit into one cell."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if origin is Literal:
        return True
    if origin is Annotated:
        return _fits(inner[0])
    if origin in (Union, UnionType, list):
        return all(map(_fits, inner))
    if origin in (dict, Mapping, Sequence):
        return _fits(inner[-1])
    return annotation in _PLAIN or annotation is bool
