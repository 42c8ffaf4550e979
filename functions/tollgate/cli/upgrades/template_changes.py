"""Differences between the templates of two releases: parameters, paths, permissions, lost data."""

import json
from collections.abc import Iterator, Mapping
from typing import Final, cast

import yaml
from msgspec import Struct

# Properties whose change replaces a resource, or fails for a KMS key. CloudFormation template
# reference: AWS::DynamoDB::Table, AWS::S3::Bucket and AWS::KMS::Key (2026-11-27).
REPLACING: Final[Mapping[str, frozenset[str]]] = {
    "AWS::DynamoDB::Table": frozenset(
        {"TableName", "KeySchema", "LocalSecondaryIndexes", "ImportSourceSpecification"}
    ),
    "AWS::S3::Bucket": frozenset({"BucketName", "BucketNamePrefix", "BucketNamespace"}),
    "AWS::KMS::Key": frozenset({"KeySpec", "KeyUsage", "MultiRegion", "Origin"}),
}
_ANY_METHOD: Final = "x-amazon-apigateway-any-method"
# Lists to which entries may be added; changing or removing an entry replaces the resource.
_EXTENDED: Final = {"AttributeDefinitions"}

_Node = object
_Tree = Mapping[str, object]


class NamedChanges(Struct, frozen=True):
    """A list of differences of one kind, as lines that begin with `+`, `-` or `~`."""

    title: str
    lines: tuple[str, ...]


class _Loader(yaml.SafeLoader):
    """Loads a template with CloudFormation's short forms, such as `!Sub`, as mappings."""


def _short_form(loader: yaml.SafeLoader, suffix: str, node: yaml.Node) -> dict[str, object]:
    match node:
        case yaml.ScalarNode():
            value: object = loader.construct_scalar(node)
        case yaml.SequenceNode():
            value = loader.construct_sequence(node, deep=True)
        case _:
            value = loader.construct_mapping(cast(yaml.MappingNode, node), deep=True)
    return {f"!{suffix}": value}


_Loader.add_multi_constructor("!", _short_form)


def load_template(text: str) -> _Tree:
    """Return a template as plain values."""
    loaded = yaml.load(text, Loader=_Loader)  # noqa: S506 - a safe loader with plain constructors
    return _tree(loaded)


def find_lost_data(before: _Tree, after: _Tree) -> Iterator[str]:
    """Yield each change that deletes or replaces a table, a bucket or a key with stored data."""
    now = _section(after, "Resources")
    for name, resource in _section(before, "Resources").items():
        was = _tree(resource)
        if was.get("Type") not in REPLACING:
            continue
        kind, then = str(was["Type"]), _tree(now.get(name))
        if then.get("Type") != kind:
            yield f"{name} ({kind}) is removed"
            continue
        if then.get("Condition") != was.get("Condition"):
            yield f"{name} ({kind}) exists under another condition"
        for policy in ("DeletionPolicy", "UpdateReplacePolicy"):
            if str(was.get(policy)).startswith("Retain") and then.get(policy) != was[policy]:
                yield f"{name} ({kind}) loses its {policy}"
        yield from _replaced(name, kind, _section(was, "Properties"), _section(then, "Properties"))


def _replaced(name: str, kind: str, was: _Tree, then: _Tree) -> Iterator[str]:
    for each in sorted(REPLACING[kind]):
        if was.get(each) != then.get(each):
            yield f"{name} ({kind}) is replaced, because {each} changes"
    for each in sorted(_EXTENDED):
        kept = then.get(each)
        if any(entry not in (kept if isinstance(kept, list) else ()) for entry in _list(was, each)):
            yield f"{name} ({kind}) is replaced, because an entry of {each} changes"


def list_template_changes(before: _Tree, after: _Tree) -> Iterator[NamedChanges]:
    """Yield the changes of parameters, of paths of the API, and of permissions."""
    for title, facts in (
        ("parameters", _parameters),
        ("paths", _paths),
        ("permissions", _permissions),
    ):
        was, then = facts(before), facts(after)
        lines = [f"- {name}{was[name]}" for name in sorted(was.keys() - then.keys())]
        lines += [f"+ {name}{then[name]}" for name in sorted(then.keys() - was.keys())]
        lines += [
            f"~ {name}{was[name]} →{then[name]}"
            for name in sorted(was.keys() & then.keys())
            if was[name] != then[name]
        ]
        if lines:
            yield NamedChanges(title, tuple(lines))


def _parameters(template: _Tree) -> dict[str, str]:
    found = {}
    for name, stated in _section(template, "Parameters").items():
        parameter = _tree(stated)
        default = _text(parameter["Default"]) or "empty" if "Default" in parameter else None
        found[name] = f" ({f'default {default}' if default else 'must be stated'})"
    return found


def _paths(template: _Tree) -> dict[str, str]:
    found = {}
    for resource in _section(template, "Resources").values():
        stated = _section(_tree(resource), "Properties")
        for event in _section(stated, "Events").values():
            properties = _section(_tree(event), "Properties")
            if "Path" in properties:
                found[f"{properties.get('Method')} {properties['Path']}"] = ""
        for path, methods in _section(_section(stated, "DefinitionBody"), "paths").items():
            for method in _tree(methods):
                found[f"{'ANY' if method == _ANY_METHOD else method.upper()} {path}"] = ""
    return found


def _permissions(template: _Tree) -> dict[str, str]:
    found = {}
    for name, resource in _section(template, "Resources").items():
        for statement in _statements(resource):
            condition = statement.get("Condition")
            when = f" if {_text(condition)}" if condition else ""
            for action in _each(statement.get("Action")):
                for target in _each(statement.get("Resource")):
                    effect = str(statement["Effect"]).lower()
                    found[f"{name} {effect} {_text(action)} on {_text(target)}{when}"] = ""
    return found


def _statements(node: _Node) -> Iterator[_Tree]:
    """Yield each statement of a policy, wherever it is in a resource, for example below `!If`."""
    match node:
        case {"Effect": _, "Action": _}:
            yield _tree(node)
        case dict():
            for inner in node.values():
                yield from _statements(inner)
        case list():
            for inner in node:
                yield from _statements(inner)
        case _:
            return


def _section(tree: _Tree, name: str) -> _Tree:
    return _tree(tree.get(name))


def _tree(node: _Node) -> _Tree:
    return cast(_Tree, node) if isinstance(node, dict) else {}


def _list(tree: _Tree, name: str) -> list[object]:
    node = tree.get(name)
    return node if isinstance(node, list) else []


def _each(node: _Node) -> list[object]:
    return node if isinstance(node, list) else [node]


def _text(node: _Node) -> str:
    """Return a value in the short form that templates use."""
    match node:
        case str():
            return node
        case {"!GetAtt": str(attribute)} | {"!Ref": str(attribute)} | {"!Sub": str(attribute)}:
            return attribute
        case _:
            return json.dumps(node, ensure_ascii=False)
