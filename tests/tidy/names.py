"""Rule that a public name has only one meaning in the whole product."""

import ast
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tests.tidy.source import Finding, Source

# Names of entry points, which every started module has, by Lambda's or the command line's rule.
_ENTRY_POINTS = {"handler", "main"}


def names_have_one_meaning(sources: Iterable[Source]) -> Iterator[Finding]:
    """Yield each public top-level name that an earlier module defines as well.

    Wire modules may repeat the names of the APIs that they describe. Codecs are parallel, so a
    codec may repeat names of other codecs, but not its own or those of other folders.
    """
    defined: defaultdict[str, list[Source]] = defaultdict(list)
    for source in sources:
        if source.module.partition(".")[0] != "tollgate" or _is_wire(source):
            continue
        for name, line in _public_names(source):
            other = next((it for it in defined[name] if not _are_parallel(it, source)), None)
            if other is not None:
                yield source.finding(line, f"{name} is defined in {other.path} too: rename one")
            defined[name].append(source)


def _public_names(source: Source) -> Iterator[tuple[str, int]]:
    """Yield each name that the module defines, once, without imported names."""
    lines: dict[str, int] = {}
    for node in source.tree.body:
        for name in _names_of(node):
            if not name.startswith("_") and name not in _ENTRY_POINTS:
                lines.setdefault(name, node.lineno)
    yield from lines.items()


def _names_of(node: ast.stmt) -> Iterator[str]:
    match node:
        case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
            yield node.name
        case ast.AnnAssign(target=ast.Name(id=name)):
            yield name
        case ast.Assign():
            for target in node.targets:
                yield from _bound_by(target)


def _bound_by(target: ast.expr) -> Iterator[str]:
    """Yield the names that an assignment binds; `ROWS["a"] = 1` binds none."""
    for part in ast.walk(target):
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
            yield part.id


def _is_wire(source: Source) -> bool:
    folder, *rest = source.module.split(".")[1:] or [""]
    return folder in {"ingress", "providers"} and ("wire" in rest or rest[-1:] == ["models"])


def _are_parallel(one: Source, other: Source) -> bool:
    codecs = _codec(one), _codec(other)
    return None not in codecs and codecs[0] != codecs[1]


def _codec(source: Source) -> str | None:
    match source.module.split("."):
        case ["tollgate", "providers", "codecs", folder, _, *_]:
            return folder
        case _:
            return None
