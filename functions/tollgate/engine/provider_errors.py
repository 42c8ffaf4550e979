"""Providers' error bodies for callers, with secrets and parts of the prompt removed."""

from collections.abc import Iterator
from typing import Final

from pydantic_core import from_json

from tollgate.core.json_value import JsonValue
from tollgate.core.work.base import Work
from tollgate.engine.withheld import withhold_prompt
from tollgate.providers.shared.refusals import redact, redact_body

# A longer body is probably an HTML page, or repeats the request; it is returned as a single string.
_BODY_BYTES_MAX: Final = 8_192
_TEXTS_MAX: Final = 64
_TEXT_LENGTH_MAX: Final = 1_000
# Separator that joins the strings of a body, so that the prompt is removed from all of them in one
# pass.
_BETWEEN: Final = "\u241e"


def show_error_body(body: bytes, request: Work) -> JsonValue:
    """Return an error body as JSON with redacted strings, or as a single redacted string.

    Each string is redacted together with its field's name, because a name like `api_key` marks a
    secret.
    """
    texts: list[str] = []
    value: JsonValue = None
    try:
        if len(body) <= _BODY_BYTES_MAX:
            value = from_json(body)
            texts = [*_redacted_texts(value, "")]
    except ValueError:
        pass
    if 0 < len(texts) <= _TEXTS_MAX:
        shown = withhold_prompt(f" {_BETWEEN} ".join(texts), request).split(_BETWEEN)
        if len(shown) == len(texts):
            return _filled(value, iter(shown))
    return withhold_prompt(redact_body(body), request)


def _redacted_texts(value: JsonValue, name: str) -> Iterator[str]:
    """Yield the redacted names, strings and numbers in a value, in order."""
    match value:
        case dict():
            for inner_name, inner in value.items():
                yield redact(inner_name)
                yield from _redacted_texts(inner, inner_name)
        case list():
            for inner in value:
                yield from _redacted_texts(inner, name)
        case None | bool():
            pass
        case _:
            label = f"{name}:" if name else ""
            text = redact(f"{label} {value}", _TEXT_LENGTH_MAX)
            # If the label is gone, it was redacted together with the string.
            yield text.removeprefix(label).strip() if text.startswith(label) else "[redacted]"


def _filled(value: JsonValue, texts: Iterator[str]) -> JsonValue:
    """Return a value with its names, strings and numbers replaced, in order."""
    match value:
        case dict():
            return {next(texts).strip(): _filled(inner, texts) for inner in value.values()}
        case list():
            return [_filled(inner, texts) for inner in value]
        case None | bool():
            return value
        case str():
            return next(texts).strip()
        case _:
            text = next(texts).strip()
            return value if text == str(value) else text
