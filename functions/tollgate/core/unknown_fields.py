"""Fields that the gateway does not know: how they are found in a body, and added to another.

A tree of unknown fields has the shape of the body that it comes from, without the known fields.
"""

import re
from collections.abc import Collection, Mapping
from typing import Final

from pydantic import BaseModel

from tollgate.core.json_value import JsonValue

# The name of an event is written on a line of a stream.
EVENT_TYPE: Final = re.compile(r"[\w.-]{1,64}", re.ASCII)
# The gateway's own usage and cost are the bill; a provider's details of them stay in the record.
_OF_THE_BILL: Final = frozenset({"usage", "cost", "credits_used"})
# Names that refer to the conversation itself, and objects that providers store.
_OF_THE_CONVERSATION: Final = frozenset({"call_id", "tool_call_id", "tool_use_id"})
_STORED: Final = frozenset({"container", "conversation", "prompt", "vector_store"})


def refers_to_stored(name: str, value: JsonValue) -> bool:
    """Return whether a field, at any depth, may name something that a provider stores.

    All workspaces share the operator's account at a provider, so the name could be of another
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
    """Return the unknown fields of a model and of the models in its fields, but not in lists.

    Fields that are null, that may name something that a provider stores, and those in `left_out`
    are not returned.
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
    """Return a body with the fields of a tree that it lacks; a known field is never replaced."""
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
