"""Forwards the unknown fields of a request to a server of the client's own format."""

from msgspec import Struct

from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.request import NativeOptions
from tollgate.core.unknown_fields import add_unknown
from tollgate.providers.ports.base import Target

# Stands for all names that are not listed.
_MORE = "..."


class OwnFormat(Struct, frozen=True):
    """The unknown fields that a server gets; none for a server of another format."""

    native: NativeOptions | None

    def add_to_body(self, body: dict[str, JsonValue]) -> dict[str, JsonValue]:
        """Return a body after adding the unknown fields to its objects."""
        if self.native is None:
            return body
        whole = add_unknown(body, self.native.unknown)
        for path, fields in self.native.within.items():
            whole = _within(whole, path.split("."), fields)
        return whole

    def add(self, encoded: dict[str, JsonValue], fields: JsonObject | None) -> dict[str, JsonValue]:
        """Return a message, part or tool with its unknown fields."""
        return add_unknown(encoded, fields) if fields and self.is_sent(fields) else encoded

    def is_sent(self, fields: JsonObject | None) -> bool:
        """Return whether the server gets these unknown fields of a message, part or tool."""
        return bool(fields) and self.native is not None

    def sent_names(self, body: JsonObject) -> set[str]:
        """Return the names of the unknown fields that a body has."""
        names = self.native.unknown_names if self.native is not None else ()
        return {name for name in names if name == _MORE or _has_parent(body, name)}


def own_format(native: NativeOptions | None, wire_format: str, target: Target) -> OwnFormat:
    """Return the unknown fields that a target of a format gets."""
    is_own = native is not None and native.wire_format == wire_format
    return OwnFormat(native if is_own and target.dialect.unknown_fields else None)


def _within(
    parent: dict[str, JsonValue], path: list[str], fields: JsonObject
) -> dict[str, JsonValue]:
    """Return an object with fields added to the inner object at a path, if there is one."""
    name, *rest = path
    child = parent.get(name)
    if not isinstance(child, dict):
        return parent
    return parent | {name: _within(child, rest, fields) if rest else add_unknown(child, fields)}


def _has_parent(body: JsonObject, name: str) -> bool:
    """Return whether a body has the parent object of a field; lists are not searched."""
    parent: JsonValue = {**body}
    for step in name.split(".")[:-1]:
        if not isinstance(parent, dict):
            return False
        if step.endswith("[]"):
            return step.removesuffix("[]") in parent
        parent = parent.get(step)
    return isinstance(parent, dict)
