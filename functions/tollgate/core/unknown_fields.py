"""Fields that the gateway does not know: finds them in a body, and adds them to another.

A tree of unknown fields has the same shape as the body it comes from, without the known fields.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

from pydantic import BaseModel

from tollgate.core.json_value import JsonValue

# The event name is written on a line of a stream, so its characters are restricted.
EVENT_TYPE: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)
# The gateway bills its own usage and cost; a provider's details about them stay in the record.
_OF_THE_BILL: Final = frozenset({"usage", "cost", "credits_used"})
# Names that refer to the conversation itself, and objects that providers store.
_OF_THE_CONVERSATION: Final = frozenset({"call_id", "tool_call_id", "tool_use_id"})
_STORED: Final = frozenset({"container", "conversation", "prompt", "vector_store"})


def refers_to_stored(name: str, value: JsonValue) -> bool:
    """Return whether a field, at any depth, may name something that a provider stores.

    All workspaces share the operator's account at a provider, so the name could refer to another
    workspace's file or container.
    """
    if name in _STORED or (name.endswith(("_id", "_ids")) and name not in _OF_THE_CONVERSATION):
        return True
    match value:
        case dict():
            return any(refers_to_stored(inner, field) for inner, field in value.items())
        case list():
            return any(refers_to_stored("", item) for item in value)
        case _:
            return False


def unknown_tree(model: BaseModel, left_out: Collection[str] = ()) -> dict[str, JsonValue]:
    """Return the unknown fields of a model and of models in its fields, but not in lists.

    Fields that are null, that may name something a provider stores, or that are in `left_out` are
    skipped.
    """
    tree = {
        name: value
        for name, value in (model.model_extra or {}).items()
        if value is not None and name not in left_out and not refers_to_stored(name, value)
    }
    for name, value in model.__dict__.items():
        if isinstance(value, BaseModel) and name not in left_out:
            inner = unknown_tree(value)
            if inner:
                tree[type(model).model_fields[name].alias or name] = inner
    return tree


def add_unknown(
    known: Mapping[str, JsonValue], tree: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    """Return a body with those fields of a tree that it does not have; known fields are never
    replaced.
    """
    body = dict(known)
    for name, value in tree.items():
        if name in _OF_THE_BILL:
            continue
        if name not in body:
            body[name] = value
        else:
            body[name] = _merged(body[name], value)
    return body


def _merged(known: JsonValue, tree: JsonValue) -> JsonValue:
    match known, tree:
        case dict(), dict():
            return add_unknown(known, tree)
        case list(), list():
            return [
                _merged(item, tree[place]) if place < len(tree) else item
                for place, item in enumerate(known)
            ]
        case _:
            return known
