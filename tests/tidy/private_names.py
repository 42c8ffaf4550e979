"""Rule that libraries, including the standard library, are used by public names only."""

import ast
from collections.abc import Iterator
from typing import Final

from tests.tidy.source import Finding, Rule, Source

_OURS: Final = frozenset({"api", "bench", "chat", "infra", "tests", "tollgate"})
# Modules without an underscore that their libraries do not document, but that were used here.
_UNDOCUMENTED: Final = (
    "prometheus_client.mmap_dict",
    "prometheus_client.values",
    "uvicorn.protocols",
    "uvicorn.server",
    "uvicorn.supervisors",
)
# Documented names of Python whose underscore only avoids collisions with fields.
_DOCUMENTED: Final = frozenset({"_asdict", "_exit", "_fields", "_make", "_replace"})
_BY_TEXT: Final = frozenset({"delattr", "getattr", "hasattr", "setattr"})
_OWN: Final = frozenset({"self", "cls"})


def libraries_are_used_by_public_names(source: Source) -> Iterator[Finding]:
    names = {(found.name, found.line) for found in source.imports} | set(source.uses)
    for name, line in sorted(names, key=lambda each: each[1]):
        if name.partition(".")[0] in _OURS:
            continue
        if any(_is_private(part) for part in name.split(".")):
            yield source.finding(line, f"{name}: a private name of a library")
        elif f"{name}.".startswith(tuple(f"{module}." for module in _UNDOCUMENTED)):
            yield source.finding(line, f"{name}: of a module that its library does not document")


def private_attributes_are_of_their_own_object(source: Source) -> Iterator[Finding]:
    """Yield each private attribute of another object, or of a base class from a library."""
    if source.path.parts[0] == "tests":
        return
    for node in source.nodes(ast.Attribute, ast.Call):
        match node:
            case ast.Attribute(value=ast.Name(id=name)) if name in _OWN:
                continue
            case ast.Attribute(attr=attr):
                pass
            case ast.Call(func=ast.Name(id=read), args=[_, ast.Constant(value=str(attr)), *_]):
                if read not in _BY_TEXT:
                    continue
            case _:
                continue
        if _is_private(attr):
            yield source.finding(node.lineno, f"{attr}: a private attribute of another object")
    for node in source.nodes(ast.ClassDef):
        yield from _inherited(source, node)


def _inherited(source: Source, node: ast.ClassDef) -> Iterator[Finding]:
    """Yield the private attributes that a class can only inherit from a library's class."""
    meanings = {found.local_name: found.refers_to.partition(".")[0] for found in source.imports}
    bases = [ast.unparse(base).partition("[")[0].partition(".")[0] for base in node.bases]
    if not bases or any(meanings.get(base, "tollgate") in _OURS for base in bases):
        # Subclasses of our own classes may read what the base defines.
        return
    parts = list(ast.walk(node))
    own = {each.name for each in parts if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)}
    own |= {each.id for each in parts if isinstance(each, ast.Name)}
    own |= {
        each.attr
        for each in parts
        if isinstance(each, ast.Attribute) and isinstance(each.ctx, ast.Store)
    }
    for each in parts:
        match each:
            case ast.Attribute(value=ast.Name(id="self" | "cls"), attr=attr, ctx=ast.Load()):
                if _is_private(attr) and attr not in own:
                    line = each.lineno
                    yield source.finding(line, f"{attr}: a private attribute of {node.name}'s base")
            case _:
                pass


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.endswith("__") and name not in _DOCUMENTED


RULES: tuple[Rule, ...] = (
    libraries_are_used_by_public_names,
    private_attributes_are_of_their_own_object,
)
