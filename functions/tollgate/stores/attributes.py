"""DynamoDB's JSON for attribute values, and back; numbers are exact integers only."""

import base64
from collections.abc import Iterable
from typing import TypedDict


class AttributeValue(TypedDict, total=False):
    """One typed value, as DynamoDB writes it: `{"N": "12"}`."""

    S: str
    N: str
    B: str
    L: "list[AttributeValue]"
    M: "dict[str, AttributeValue]"


Item = dict[str, AttributeValue]


def text(value: str) -> AttributeValue:
    """A string."""
    return {"S": value}


def number(value: int) -> AttributeValue:
    """An exact integer."""
    return {"N": str(value)}


def binary(value: bytes) -> AttributeValue:
    """Bytes."""
    return {"B": base64.b64encode(value).decode("ascii")}


def texts(values: Iterable[str]) -> AttributeValue:
    """A list of strings."""
    return {"L": [text(value) for value in values]}


def read_text(item: Item, name: str) -> str:
    """A string that must be there."""
    return item[name]["S"]


def read_optional_text(item: Item, name: str) -> str | None:
    """A string, or None if the item has none."""
    return item[name]["S"] if name in item else None


def read_number(item: Item, name: str) -> int:
    """An integer that must be there."""
    return int(item[name]["N"])


def read_optional_number(item: Item, name: str) -> int | None:
    """An integer, or None if the item has none."""
    return int(item[name]["N"]) if name in item else None


def read_binary(item: Item, name: str) -> bytes:
    """Bytes that must be there."""
    return base64.b64decode(item[name]["B"])


def read_texts(item: Item, name: str) -> tuple[str, ...] | None:
    """A list of strings, or None if the item has none."""
    return tuple(value["S"] for value in item[name]["L"]) if name in item else None


def read_numbers_by_name(item: Item, name: str) -> dict[str, int]:
    """A map of integers that must be there."""
    return {key: int(value["N"]) for key, value in item[name]["M"].items()}
