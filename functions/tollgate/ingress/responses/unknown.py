"""The unknown fields of a Responses request: what becomes of them, and their names.

Providers of Responses get them, except those of reasoning items, refusals, files and server tools,
which the gateway encodes in another form.
"""

from collections.abc import Iterable, Iterator
from typing import Final

from pydantic_core import to_json

from tollgate.core.content import Provenance, Reasoning
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.signers import OPENAI_ITEMS
from tollgate.core.unknown_fields import refers_to_stored, unknown_tree
from tollgate.ingress.responses.wire import input_items, tool_models
from tollgate.ingress.responses.wire import response_request as wire
from tollgate.ingress.shared.fields import UnknownNames, extra_fields, name_unknown
from tollgate.ingress.shared.held_fields import HELD_OF_RESPONSES
from tollgate.ingress.shared.wire.request_model import Wire, unknown_of

_ITEM: Final = "input[]."
_PART: Final = "input[].content[]."
_OUTPUT: Final = "input[].output[]."
_CARRIERS: Final = (
    input_items.MessageItem,
    input_items.FunctionCallItem,
    input_items.CustomToolCallItem,
    input_items.CallOutputItem,
)
_OWN_PARTS: Final = (input_items.InputText, input_items.InputImage)


def name_fields(
    params: wire.ResponsesRequest,
    items: Iterable[tuple[str, input_items.Item]],
    tools: Iterable[tuple[str, tool_models.Tool]],
) -> UnknownNames:
    """Return the names of the unknown fields of a request; each item and tool has its path."""
    return name_unknown(_carriers(params, items, tools), HELD_OF_RESPONSES)


def fields_of_body(params: wire.ResponsesRequest) -> JsonObject:
    """Return the unknown fields of the body and of `text`."""
    tree: dict[str, JsonValue] = unknown_tree(params, HELD_OF_RESPONSES | params.__dict__.keys())
    text = params.text and unknown_tree(params.text, params.text.__dict__.keys())
    return {**tree, "text": text} if text else tree


def fields_within(params: wire.ResponsesRequest) -> dict[str, JsonObject]:
    """Return the unknown fields of other objects in the body, by the path of the object."""
    objects = {
        "text.format": params.text.format if params.text else None,
        "reasoning": params.reasoning,
    }
    return {
        path: fields
        for path, model in objects.items()
        if model is not None and (fields := unknown_tree(model, model.__dict__.keys()))
    }


def fields_of_text(item: input_items.MessageItem, part: input_items.InputText) -> JsonObject | None:
    """Return the unknown fields of an answer's item and of one of its texts."""
    inner = unknown_of(part)
    fields = unknown_of(item) or {}
    return {**fields, "content": [inner]} if inner else fields or None


def own_item(item: input_items.OtherItem) -> Iterator[Reasoning]:
    """Yield an item of unknown type for providers of the format, unless it may name something that
    a provider stores.
    """
    raw = item.model_dump()
    if not refers_to_stored("", raw):
        data = to_json(raw).decode()
        yield Reasoning(text="", provenance=Provenance(signer=OPENAI_ITEMS, data=data))


def unread_of_item(item: input_items.Item) -> Iterator[str]:
    """Yield the names of an item's unknown fields that no provider gets."""
    if isinstance(item, input_items.OtherItem):
        if not any(own_item(item)):
            yield f"input[]:{item.type}"
        return
    for path, part in _parts(item):
        if not isinstance(part, _OWN_PARTS):
            yield from extra_fields(part, path)
    if not isinstance(item, _CARRIERS):
        yield from extra_fields(item, _ITEM)


def _carriers(
    params: wire.ResponsesRequest,
    items: Iterable[tuple[str, input_items.Item]],
    tools: Iterable[tuple[str, tool_models.Tool]],
) -> Iterator[tuple[Wire | None, str]]:
    """Yield the models whose unknown fields providers of the format get, each with its path."""
    yield params, ""
    yield params.text, "text."
    yield params.text.format if params.text else None, "text.format."
    yield params.reasoning, "reasoning."
    for _, item in items:
        if isinstance(item, _CARRIERS):
            yield item, _ITEM
        yield from ((part, path) for path, part in _parts(item) if isinstance(part, _OWN_PARTS))
    for _, tool in tools:
        match tool:
            case tool_models.FunctionTool() | tool_models.CustomTextTool():
                yield tool, "tools[]."
            case tool_models.NamespaceTool():
                yield from ((nested, "tools[].tools[].") for nested in tool.tools)
            case _:
                pass


def _parts(item: input_items.Item) -> Iterator[tuple[str, input_items.InputPart]]:
    match item:
        case input_items.MessageItem(content=list() as parts):
            yield from ((_PART, part) for part in parts)
        case input_items.CallOutputItem(output=list() as parts):
            yield from ((_OUTPUT, part) for part in parts)
        case _:
            pass
