"""Fields that the gateway does not know: how they are found in a body, and added to another.

A tree of unknown fields has the shape of the body that it comes from, without the known fields.
"""

from collections.abc import Collection, Mapping

from pydantic import BaseModel

from tollgate.core.json_value import JsonValue

# The gateway's own usage and cost are the bill; a provider's details of them stay in the record.
_OF_THE_BILL = frozenset({"usage", "cost", "credits_used"})


def unknown_tree(model: BaseModel, left_out: Collection[str] = ()) -> dict[str, JsonValue]:
    """Return the unknown fields of a model and of the models in its fields, but not in lists.

    Fields that are null, and fields in `left_out`, are not returned.
    """
    tree = {
        name: value
        for name, value in (model.model_extra or {}).items()
        if value is not None and name not in left_out
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
