"""DynamoDB's JSON for attribute values; numbers are exact integers only."""

import base64
from collections.abc import Iterable
from typing import TypedDict


class AttributeValue(TypedDict, total=False):
    """One typed value in DynamoDB's JSON, such as `{"N": "12"}`."""

    S: str
    N: str
    B: str
    L: "list[AttributeValue]"
    M: "dict[str, AttributeValue]"


Item = dict[str, AttributeValue]


def string(value: str) -> AttributeValue:
    """Encode a string."""
    return {"S": value}


def number(value: int) -> AttributeValue:
    """Encode an exact integer."""
    return {"N": str(value)}


def binary(value: bytes) -> AttributeValue:
    """Encode bytes."""
    return {"B": base64.b64encode(value).decode("ascii")}


def texts(values: Iterable[str]) -> AttributeValue:
    """Encode a list of strings."""
    return {"L": [string(value) for value in values]}
