"""A decoder for request bodies that are JSON objects, with a limit on nesting."""

from typing import Final

import msgspec
from pydantic_core import from_json

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.json_value import JsonValue

NESTING_MAX: Final = 200

_CONTAINERS: Final = (dict, list)


def decode_object(body: bytes) -> dict[str, JsonValue]:
    """Return the JSON object in `body`; raise RequestError if the body is not a JSON object.

    If a key occurs twice, the last value is used. Strings with half a surrogate pair, NaN and
    Infinity are refused as invalid JSON.
    """
    try:
        value = _decode(body)
    except ValueError as error:
        reason = str(error)
        if reason.startswith("recursion limit"):
            raise _too_deep() from error
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"The body is not valid JSON: {reason}."
        ) from error
    # NESTING_MAX is checked here, because each decoder has a different limit.
    if body.count(b"[") + body.count(b"{") > NESTING_MAX and _is_too_deep(value):
        raise _too_deep()
    if not isinstance(value, dict):
        raise RequestError(ErrorCode.INVALID_REQUEST, "The body must be a JSON object.")
    return value


def _decode(body: bytes) -> JsonValue:
    """Decode JSON with msgspec; if that fails, raise pydantic's ValueError.

    msgspec takes half the time for a long prompt, but only pydantic names the line and column of a
    mistake. Except for deep nesting, msgspec accepts nothing that pydantic refuses.
    """
    try:
        value: JsonValue = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        value = from_json(body, allow_inf_nan=False)
    return value


def _too_deep() -> RequestError:
    return RequestError(
        ErrorCode.INVALID_REQUEST, f"The body is nested deeper than {NESTING_MAX} levels."
    )


def _is_too_deep(value: JsonValue) -> bool:
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(NESTING_MAX):
        level = [
            child
            for node in level
            for child in (node.values() if isinstance(node, dict) else node)
            if isinstance(child, _CONTAINERS)
        ]
        if not level:
            return False
    return True
