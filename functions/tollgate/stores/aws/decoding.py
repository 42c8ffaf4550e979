"""Decodes stored items. A corrupt item raises CorruptItem with the item's key; lists skip such
items.
"""

import base64
import logging
import zlib
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Concatenate, Final, ParamSpec, TypeVar

from msgspec import MsgspecError

from tollgate.aws.attributes import Item
from tollgate.aws.failures import CorruptItem
from tollgate.stores.aws.items import AnyItem

_log = logging.getLogger(__name__)

# Errors from decoding a value that is missing, of the wrong type, or out of range.
_DECODE_ERRORS: Final = (
    KeyError,
    TypeError,
    AttributeError,
    ValueError,
    ArithmeticError,
    zlib.error,
    MsgspecError,
)
_Rest = ParamSpec("_Rest")
_Value = TypeVar("_Value")


def reads_an_item(
    read: Callable[Concatenate[Item, _Rest], _Value],
) -> Callable[Concatenate[Item, _Rest], _Value]:
    """Wrap a function that decodes an item, so that it raises CorruptItem if decoding fails."""

    @wraps(read)
    def reading(item: Item, /, *rest: _Rest.args, **named: _Rest.kwargs) -> _Value:
        try:
            return read(item, *rest, **named)
        except _DECODE_ERRORS as error:
            raise CorruptItem(name_of_item(item), error) from error

    return reading


def name_of_item(item: Item) -> str:
    """Return the partition key and sort key of an item, so that an operator can find it."""
    keys = (item[name] for name in (AnyItem.PARTITION, AnyItem.SORT) if name in item)
    return " ".join(key.get("S", "?") for key in keys)


def decode_items(
    read: Callable[[Item], _Value], items: Iterable[Item]
) -> tuple[list[_Value], list[str]]:
    """Decode each item; return the values and the names of the corrupt items, which are logged."""
    values, corrupt = [], []
    for item in items:
        try:
            values.append(read(item))
        except CorruptItem as error:
            _log.error("skipped a corrupt item in a list: %s", error)
            corrupt.append(error.name)
    return values, corrupt


@reads_an_item
def read_text(item: Item, name: str) -> str:
    """Return a string; raise CorruptItem if it is missing."""
    return item[name]["S"]


@reads_an_item
def read_optional_text(item: Item, name: str) -> str | None:
    """Return a string; None if the item does not have the attribute."""
    return item[name]["S"] if name in item else None


@reads_an_item
def read_number(item: Item, name: str) -> int:
    """Return an integer; raise CorruptItem if it is missing."""
    return int(item[name]["N"])


@reads_an_item
def read_optional_number(item: Item, name: str) -> int | None:
    """Return an integer; None if the item does not have the attribute."""
    return int(item[name]["N"]) if name in item else None


@reads_an_item
def read_binary(item: Item, name: str) -> bytes:
    """Return bytes; raise CorruptItem if they are missing."""
    return base64.b64decode(item[name]["B"])


@reads_an_item
def read_texts(item: Item, name: str) -> tuple[str, ...] | None:
    """Return a list of strings; None if the item does not have the attribute."""
    return tuple(value["S"] for value in item[name]["L"]) if name in item else None


@reads_an_item
def read_numbers_by_name(item: Item, name: str) -> dict[str, int]:
    """Return a map of integers; raise CorruptItem if it is missing."""
    return {key: int(value["N"]) for key, value in item[name]["M"].items()}
