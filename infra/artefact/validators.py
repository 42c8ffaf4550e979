"""Write the core schemas of models at build, so that no cold start makes them."""

import pickle
import re
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from pydantic import BaseModel
from pydantic_core import CoreConfig

from tollgate.core.prepared_models import write_models

# Read by JSON schemas, and by serializers of models that no function serializes. Settings have an
# `__init__` of their own, which validates by this schema.
_UNREAD: Final = frozenset({"metadata", "serialization", "custom_init"})
_REFS: Final = frozenset({"ref", "schema_ref"})


def write_validators(models: Iterable[type[BaseModel]]) -> bytes:
    """Return what `wiring.validators` reads: of each model the class, core schema and config.

    Classes and functions are kept by name, so that a lambda in a model ends the build.
    """
    return pickle.dumps([(it, *_validator_parts(it)) for it in models], protocol=5)


def write_prepared_models(source: Path, files: Iterable[Path]) -> bytes:
    """Return what `core.prepared_models` reads: the schemas of the models that files define."""
    names = (_module_name(it.relative_to(source)) for it in files if not _keeps_pydantic(it))
    modules = {import_module(it).__name__ for it in names if it.startswith("tollgate.")}
    found = sorted(_all_below(BaseModel), key=lambda it: (it.__module__, it.__qualname__))
    ours = [it for it in found if it.__module__ in modules]
    return write_models((it, *_validator_parts(it)) for it in ours)


def _keeps_pydantic(file: Path) -> bool:
    """Return whether models of a module are pydantic's own even in a function."""
    return re.search(r"^from pydantic import .*\bBaseModel\b", file.read_text(), re.M) is not None


def _module_name(file: Path) -> str:
    parts = file.with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _all_below(model: type[BaseModel]) -> Iterator[type[BaseModel]]:
    for below in model.__subclasses__():
        yield below
        yield from _all_below(below)


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


def _find_config(schema: Any, model: type[BaseModel]) -> CoreConfig:
    """Return the config of the schema of a model, which functions or definitions may surround."""
    node = schema
    while node.get("cls") is not model:
        if node["type"] == "definition-ref":
            node = next(it for it in schema["definitions"] if it.get("cls") is model)
        else:
            node = node["schema"]
    config: CoreConfig = node["config"]
    return config
