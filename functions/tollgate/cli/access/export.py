"""Write access.yaml from the state of a workspace."""

from decimal import Decimal
from typing import Final, TypeAlias

import yaml

from tollgate.cli.access.access_file import ACCESS_KINDS, KEYS, WORKSPACE, Kind
from tollgate.cli.access.live import LiveAccess, LiveObject
from tollgate.stores.ports.people import SESSION_KEY_PREFIX

_Written: TypeAlias = "str | int | float | bool | list[str] | dict[str, _Written]"
_COLUMNS: Final = 100


def export_access(live: LiveAccess) -> str:
    """Return a file with all settings that have a value.

    Members' keys are left out, because members create and delete them themselves.
    """
    sections: dict[str, object] = {"version": 1}
    for kind in sorted(ACCESS_KINDS, key=lambda kind: kind is not WORKSPACE):
        entries = {
            name: _settings(kind, found)
            for name, found in live.of(kind).items()
            if not (kind is KEYS and _is_personal(found))
        }
        if kind is WORKSPACE:
            sections["workspace"] = {"id": live.workspace_id, **entries[live.workspace_id]}
        elif entries:
            sections[kind.section] = entries
    return yaml.safe_dump(sections, sort_keys=False, allow_unicode=True, width=_COLUMNS)


def _is_personal(key: LiveObject) -> bool:
    return key["member_id"] is not None or key["name"].startswith(SESSION_KEY_PREFIX)


def _settings(kind: Kind, found: LiveObject) -> dict[str, _Written]:
    """Return the settings of an object that have a value other than the entry's default."""
    stated = {}
    for name, field in kind.entry.model_fields.items():
        value = found.get(name)
        if name != kind.identity and value not in (None, "", {}, field.default):
            stated[name] = _written(value)
    return stated


def _written(value: object) -> _Written:
    match value:
        case dict():
            return {str(name): _written(each) for name, each in value.items()}
        case list():
            return [str(each) for each in value]
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case bool() | int() | str():
            return value
        case _:
            raise TypeError(type(value).__name__)
