"""Write the core schemas of models at build, so that no cold start makes them."""

import pickle
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import BaseModel
from pydantic_core import CoreConfig

# Read by JSON schemas and serializers, not by validators.
_UNREAD = frozenset({"metadata", "serialization"})
_REFS = frozenset({"ref", "schema_ref"})


def write_validators(models: Iterable[type[BaseModel]]) -> bytes:
    """Return what `wiring.validators` reads: of each model the class, core schema and config.

    Classes and functions are kept by name, so that a lambda in a model ends the build.
    """
    return pickle.dumps([(it, *_validator_parts(it)) for it in models], protocol=5)


def _validator_parts(model: type[BaseModel]) -> tuple[Any, CoreConfig]:
    model.model_rebuild()
    schema = strip_schema(model.__pydantic_core_schema__, {})
    return schema, _find_config(schema, model)


def strip_schema(node: Any, refs: dict[str, str]) -> Any:
    """Return a core schema without what validators do not read.

    Names of definitions are numbered through `refs`: pydantic's own have addresses of memory, and
    the same source must give the same artefact.
    """
    if isinstance(node, Mapping):
        # Mappings of fields have no type of their own, and a field may have any name.
        if not isinstance(node.get("type"), str):
            return {key: strip_schema(value, refs) for key, value in node.items()}
        return {
            key: refs.setdefault(value, str(len(refs)))
            if key in _REFS
            else strip_schema(value, refs)
            for key, value in node.items()
            if key not in _UNREAD
        }
    if type(node) in (list, tuple):
        return type(node)(strip_schema(it, refs) for it in node)
    return node


def _find_config(node: Any, model: type[BaseModel]) -> CoreConfig:
    """Return the config of the schema of a model, which definitions or functions may surround."""
    while node.get("cls") is not model:
        node = node["schema"]
    config: CoreConfig = node["config"]
    return config
