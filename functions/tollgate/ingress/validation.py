"""Decodes and validates request bodies, with errors that name the field."""

from collections.abc import Iterable, Mapping
from typing import Final, TypeVar

import msgspec
from pydantic import BaseModel
from pydantic_core import ErrorDetails, ValidationError, from_json

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.json_value import JsonValue

NESTING_MAX: Final = 200
# An embeddings request with 300,000 token ids fits; the decoder takes 0.1 µs per value.
VALUES_MAX: Final = 400_000

_PIECE_BYTES: Final = 256 * 1024
_MARKS: Final = (b",", b"[", b"{")

_CONTAINERS: Final = (dict, list)


def decode_object(body: bytes) -> dict[str, JsonValue]:
    """Return the JSON object in `body`; raise RequestError if the body is not a JSON object.

    If a key occurs twice, the last value is used. Strings with half a surrogate pair, NaN and
    Infinity are refused as invalid JSON. The number of values is checked before the decoding, which
    takes up to 60 bytes of memory for a byte of JSON.
    """
    if has_more_marks(body, VALUES_MAX) and _has_too_many_values(body):
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"The body has more than {VALUES_MAX:,} JSON values."
        )
    try:
        value = _decode(body)
    except ValueError as error:
        reason = str(error)
        if reason.startswith("recursion limit"):
            raise _too_deep() from error
        raise RequestError(
            ErrorCode.INVALID_REQUEST, f"The body is not valid JSON: {reason}."
        ) from error
    # NESTING_MAX is checked here, because the decoders all have different limits.
    if body.count(b"[") + body.count(b"{") > NESTING_MAX and _is_too_deep(value):
        raise _too_deep()
    if not isinstance(value, dict):
        raise RequestError(ErrorCode.INVALID_REQUEST, "The body must be a JSON object.")
    return value


def has_more_marks(body: bytes, most: int) -> bool:
    """Return whether a body has more than `most` commas and opening brackets.

    A JSON body has at most one more value than it has such characters. Those inside strings are
    counted too.
    """
    marks = 0
    for start in range(0, len(body), _PIECE_BYTES):
        marks += sum(body.count(mark, start, start + _PIECE_BYTES) for mark in _MARKS)
        if marks > most:
            return True
    return False


def _has_too_many_values(body: bytes) -> bool:
    """Return whether a body has more than VALUES_MAX marks outside of strings.

    The body is read in pieces, between which other threads may run.
    """
    marks, start, is_in_string = 0, 0, False
    while start < len(body) and marks <= VALUES_MAX:
        piece = body[start : start + _PIECE_BYTES]
        start += len(piece)
        if start < len(body) and (len(piece) - len(piece.rstrip(b"\\"))) % 2:
            # The last backslash escapes the first character of the next piece.
            piece, start = piece[:-1], start - 1
        texts = piece.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')
        outside = b"".join(texts[is_in_string::2])
        marks += sum(map(outside.count, _MARKS))
        is_in_string ^= len(texts) % 2 == 0
    return marks > VALUES_MAX


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


_Model = TypeVar("_Model", bound=BaseModel)
# Sentences to append to an error message, by the name of the field at fault.
_Hints = Mapping[str, str]
_NO_HINTS: Final[_Hints] = {}

_QUOTED_MAX: Final = 64

_TIME: Final = "must be a time such as 2026-11-21T00:00:00Z"

# Messages by pydantic's error type; for other types pydantic's message is used.
# https://docs.pydantic.dev/latest/errors/validation_errors/ (2.13)
_MESSAGES: Final[Mapping[str, str]] = {
    "missing": "is required",
    "none_required": "is not supported",
    "extra_forbidden": "is not a field of this request",
    "model_type": "must be an object",
    "dict_type": "must be an object",
    "list_type": "must be an array",
    "string_type": "must be a string",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be an integer",
    "int_parsing": "must be an integer",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
    "decimal_type": "must be a number",
    "decimal_parsing": "must be a number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "too_long": "must have at most {max_length} entries",
    "too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "string_too_short": "must not be empty",
    "string_pattern_mismatch": "must match {pattern}",
    "literal_error": "must be {expected}",
    "datetime_type": _TIME,
    "datetime_parsing": _TIME,
    "datetime_from_date_parsing": _TIME,
    "datetime_object_invalid": _TIME,
    "timezone_aware": _TIME,
}

# For some errors pydantic reports only the union; this maps the error type to the field at fault.
_FIELD_AT_FAULT: Final[Mapping[str, str]] = {"unknown_role": "role", "unknown_type": "type"}


def validate_body(model: type[_Model], body: bytes, hints: _Hints = _NO_HINTS) -> _Model:
    """Validate a JSON body; raise RequestError with the first field at fault and its hint."""
    return validate_object(model, decode_object(body), hints)


def validate_object(
    model: type[_Model],
    content: Mapping[str, JsonValue],
    hints: _Hints = _NO_HINTS,
    *,
    strict: bool | None = None,
) -> _Model:
    """Validate a decoded body; raise RequestError with the first field at fault."""
    try:
        return model.model_validate(content, strict=strict)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise field_error(first, first["loc"], hints) from error


def validate_texts(
    model: type[_Model], content: Mapping[str, JsonValue], hints: _Hints = _NO_HINTS
) -> _Model:
    """Validate form fields, whose numbers and booleans are sent as text."""
    return validate_object(model, content, hints, strict=False)


def field_error(
    first: ErrorDetails, place: Iterable[int | str], hints: _Hints = _NO_HINTS
) -> RequestError:
    """Return an error about the field at `place`, from pydantic's first error."""
    at_fault = _FIELD_AT_FAULT.get(first["type"])
    param = field_path((*place, at_fault) if at_fault else place)
    message = f"{param} {_message(first)}."
    hint = hints.get(param.rpartition(".")[2])
    return RequestError(
        ErrorCode.INVALID_REQUEST, f"{message} {hint}" if hint else message, param=param
    )


def field_path(steps: Iterable[int | str]) -> str:
    """Return a field path such as `messages[0].content[1].type`, without the tags of unions."""
    path = ""
    for step in steps:
        if isinstance(step, int):
            path += f"[{step}]"
        elif not step.startswith(("<", "[")):
            path += f".{step}" if path else step
    return path


def _message(error: ErrorDetails) -> str:
    context = error.get("ctx", {})
    if context.get("max_length") == 0 or context.get("expected") == "False":
        return _MESSAGES["none_required"]
    template = _MESSAGES.get(error["type"])
    message = template.format(**context) if template else _in_pydantics_words(error["msg"])
    quoted = _quoted(error)
    return f"{message}, not {quoted}" if quoted else message


def _in_pydantics_words(message: str) -> str:
    words = message.removeprefix("Input ").removeprefix("Value error, ")
    return f"is wrong: {words}" if words[:1].isupper() else words


def _quoted(error: ErrorDetails) -> str | None:
    match error["type"], error["input"]:
        case "literal_error", str() as text:
            return repr(text[:_QUOTED_MAX])
        case "literal_error", bool() | int() as value:
            return str(value).lower()[:_QUOTED_MAX]
        case field, dict() as member if field in _FIELD_AT_FAULT:
            tag = member.get(_FIELD_AT_FAULT[field])
            return repr(tag[:_QUOTED_MAX]) if isinstance(tag, str) else None
        case _:
            return None
