"""Options that only OpenAI's Responses format has, set at their paths in a request."""

from typing import Final

from tollgate.core.json_value import JsonValue
from tollgate.core.request import NativeOptions
from tollgate.providers.ports.base import Target

_WIRE_FORMAT: Final = "openai_responses"
_SUMMARY: Final = "reasoning.summary"


def own_fields(stated: NativeOptions | None, target: Target) -> dict[str, JsonValue]:
    """Return the options that a server accepts, by the path of their field."""
    if stated is None or stated.wire_format != _WIRE_FORMAT:
        return {}
    return {name: value for name, value in stated.fields.items() if _is_taken(name, target)}


def add_fields(body: dict[str, JsonValue], fields: dict[str, JsonValue]) -> None:
    """Set fields in a body, each at its path: a field, or a field of a field."""
    for path, value in fields.items():
        parent, _, name = path.rpartition(".")
        if not parent:
            body[name] = value
            continue
        known = body.get(parent)
        body[parent] = {**(known if isinstance(known, dict) else {}), name: value}


def _is_taken(name: str, target: Target) -> bool:
    if name != _SUMMARY:
        return True
    # OpenAI offers summaries to verified organisations only.
    return "reasoning" in target.supports and target.dialect.reasoning_summaries
