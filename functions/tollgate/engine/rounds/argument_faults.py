"""Checks the arguments of a call against the tool's declaration."""

from collections.abc import Mapping
from typing import Final

from pydantic_core import from_json

from tollgate.core.json_value import JsonValue
from tollgate.core.request import JsonObject

_TYPES: Final[Mapping[str, tuple[type, ...]]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list,),
    "object": (dict,),
}


def read_arguments(text: str, schema: JsonObject) -> dict[str, JsonValue] | str:
    """Return the arguments of a call, or what is wrong with them, in words for the model.

    Three rules of the schema are checked: `required`, and the `type` and `enum` of each property.
    """
    try:
        arguments = from_json(text or "{}")
    except ValueError:
        return "The arguments are not JSON."
    if not isinstance(arguments, dict):
        return "The arguments must be a JSON object."
    properties = schema.get("properties")
    declared = properties if isinstance(properties, Mapping) else {}
    required = schema.get("required")
    for name in required if isinstance(required, list | tuple) else ():
        if name not in arguments:
            return f"The argument {name} is missing."
    for name, value in arguments.items():
        rule = declared.get(name)
        if isinstance(rule, Mapping) and (fault := _find_fault(value, rule)):
            return f"The argument {name} {fault}."
    return arguments


def _find_fault(value: JsonValue, rule: Mapping[str, JsonValue]) -> str | None:
    kind = rule.get("type")
    types = _TYPES.get(kind) if isinstance(kind, str) else None
    is_truth = isinstance(value, bool) and kind != "boolean"
    if types is not None and (is_truth or not isinstance(value, types)):
        return f"must be of type {kind}"
    listed = rule.get("enum")
    if isinstance(listed, list | tuple) and value not in listed:
        return f"must be one of {', '.join(map(str, listed))}"
    return None
