"""A template under given parameters: conditions decided, everything else as it stands."""

from collections.abc import Mapping
from typing import Any, Final

JsonObject = dict[str, Any]

_ABSENT: Final = object()
_NO_VALUE: Final = {"Ref": "AWS::NoValue"}


def decided(template: JsonObject, given: Mapping[str, str]) -> JsonObject:
    """Return the template without the parts that its conditions leave out.

    Raises KeyError for an unknown parameter.
    """
    values = {name: str(it["Default"]) for name, it in template["Parameters"].items()}
    for name, value in given.items():
        if name not in values:
            raise KeyError(name)
        values[name] = value
    truths = {name: _true(condition, values) for name, condition in template["Conditions"].items()}
    result = dict(template)
    for section in ("Resources", "Outputs"):
        result[section] = {
            name: _chosen(entry, truths)
            for name, entry in template[section].items()
            if "Condition" not in entry or truths[entry["Condition"]]
        }
    return result


def _true(condition: JsonObject, values: Mapping[str, str]) -> bool:
    match condition:
        case {"Fn::Equals": [{"Ref": name}, value]}:
            return values[name] == str(value)
        case {"Fn::Not": [inner]}:
            return not _true(inner, values)
        case _:
            raise AssertionError(f"cannot decide {condition}")


def _chosen(value: Any, truths: Mapping[str, bool]) -> Any:
    match value:
        case {"Fn::If": [condition, yes, no]}:
            return _chosen(yes if truths[condition] else no, truths)
        case dict() if value == _NO_VALUE:
            return _ABSENT
        case dict():
            chosen = {key: _chosen(it, truths) for key, it in value.items()}
            return {key: it for key, it in chosen.items() if it is not _ABSENT}
        case list():
            return [it for it in (_chosen(it, truths) for it in value) if it is not _ABSENT]
        case _:
            return value
