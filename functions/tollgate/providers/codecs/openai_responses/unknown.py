"""Finds events and items of types that the gateway does not know, and unknown fields of others."""

from collections.abc import Collection, Iterator
from typing import Final

from pydantic import BaseModel
from pydantic_core import from_json

from tollgate.core.content import Provenance
from tollgate.core.events import UnknownFields
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.signers import OPENAI_ITEMS
from tollgate.core.unknown_fields import EVENT_TYPE
from tollgate.providers.codecs.openai_responses.wire import Content, Event, Item, Response

_WIRE_FORMAT: Final = "openai_responses"
# Fields of events that repeat other events, number them, or pad them to hide their length.
# https://platform.openai.com/docs/api-reference/responses-streaming (2026-11-27)
_OF_EVENT: Final = frozenset(
    {
        "annotation_index",
        "arguments",
        "input",
        "item_id",
        "name",
        "obfuscation",
        "part",
        "refusal",
        "sequence_number",
        "text",
    }
)
# Fields that the gateway writes itself, mostly by copying them from the request.
_OF_RESPONSE: Final = frozenset(
    {
        "background",
        "completed_at",
        "conversation",
        "created_at",
        "frequency_penalty",
        "instructions",
        "max_output_tokens",
        "max_tool_calls",
        "metadata",
        "object",
        "output_text",
        "parallel_tool_calls",
        "presence_penalty",
        "previous_response_id",
        "prompt",
        "prompt_cache_key",
        "reasoning",
        "safety_identifier",
        "store",
        "temperature",
        "text",
        "tool_choice",
        "tools",
        "top_logprobs",
        "top_p",
        "truncation",
        "user",
    }
)
_OF_PART: Final = frozenset(Content.model_fields)
_OF_ITEM: Final = frozenset({"namespace", "role", "status"})
_CREATED: Final = "response.created"
# The gateway writes this event together with the first, before the provider's event arrives.
_IN_PROGRESS: Final = "response.in_progress"


def unknown_of_event(event: Event) -> Iterator[UnknownFields]:
    """Yield the unknown fields of an event."""
    if event.type == _IN_PROGRESS:
        return
    tree = _unknown(event, _OF_EVENT)
    if event.response is not None:
        response = _of_response(event.response)
        if response:
            tree["response"] = response
    part = (event.model_extra or {}).get("part")
    if isinstance(part, dict) and (inner := _known_out(part, _OF_PART)):
        tree["part"] = inner
    item = event.item
    if item is not None and _is_shown(item) and (fields := _of_item(item)):
        tree["item"] = fields
    if tree:
        places = (_CREATED, _IN_PROGRESS) if event.type == _CREATED else (event.type,)
        yield from (
            UnknownFields(wire_format=_WIRE_FORMAT, place=place, fields=tree) for place in places
        )


def unknown_event(data: bytes) -> UnknownFields | None:
    """Return an event of unknown type; None if its type cannot be the name of an event."""
    try:
        event = from_json(data)
    except ValueError:
        return None
    type_ = event.get("type") if isinstance(event, dict) else None
    if not isinstance(type_, str) or not EVENT_TYPE.fullmatch(type_):
        return None
    return UnknownFields(wire_format=_WIRE_FORMAT, place=type_, fields=event, is_frame=True)


def _of_response(response: Response) -> dict[str, JsonValue]:
    tree = _unknown(response, _OF_RESPONSE)
    items: list[JsonValue] = [_of_item(item) for item in response.output if _is_shown(item)]
    if any(items):
        tree["output"] = items
    return tree


def _is_shown(item: Item) -> bool:
    """Return whether an item appears in the reply; reasoning without content does not."""
    match item.type:
        case "reasoning":
            return bool(item.summary or item.content or item.encrypted_content)
        case "web_search_call":
            return False
        case _:
            return True


def _of_item(item: Item) -> dict[str, JsonValue]:
    tree = _unknown(item, _OF_ITEM)
    parts: list[JsonValue] = [_unknown(part, ()) for part in item.content or ()]
    if any(parts):
        tree["content"] = parts
    return tree


def _unknown(model: BaseModel, known: Collection[str]) -> dict[str, JsonValue]:
    """Return the unknown fields of a model, without those of nested models."""
    return _known_out(model.model_extra or {}, known)


def _known_out(fields: JsonObject, known: Collection[str]) -> dict[str, JsonValue]:
    return {
        name: value for name, value in fields.items() if name not in known and value is not None
    }


def unknown_item(item: Item) -> Provenance:
    """Return an item of unknown type, for clients and providers of the format."""
    data = item.model_dump_json(exclude_unset=True)
    return Provenance(signer=OPENAI_ITEMS, data=data)
