"""Search for all modules that an entry file can import, in sources and without importing them.

Imports inside functions and dotted names count. Only modules that are reached are shipped.
Therefore the command line and the checks of routing.yaml are left out without a list of exclusions.
"""

import ast
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

_DOTTED: Final = "DottedName"
# Fields of a statement that contain statements, or handlers and cases with statements.
_BLOCKS: Final = ("body", "orelse", "finalbody", "handlers", "cases")


@dataclass(frozen=True, slots=True)
class Closure:
    """The files in a folder that are reached, and the names of reached modules outside the
    folder.
    """

    files: frozenset[Path]
    elsewhere: frozenset[str]


def find_closure(
    folder: Path, modules: Iterable[str], *, left_out: Collection[str] = ()
) -> Closure:
    """Return the files in `folder` for these modules and all their direct or indirect imports.

    Modules in `left_out`, and modules that only they import, are not returned.
    """
    files: set[Path] = set()
    elsewhere: set[str] = set()
    seen: set[str] = set()
    waiting = list(modules)
    while waiting:
        name = waiting.pop()
        if name in seen or name in left_out:
            continue
        seen.add(name)
        file = _file(folder, name)
        if file is None:
            if _file(folder, name.partition(".")[0]) is None:
                elsewhere.add(name)
            continue
        files.add(file)
        waiting += _imported(file, name)
        waiting += _parents(name)
    return Closure(frozenset(files), frozenset(elsewhere))


def _file(folder: Path, module: str) -> Path | None:
    path = folder.joinpath(*module.split("."))
    for file in (path / "__init__.py", path.with_suffix(".py")):
        if file.is_file():
            return file
    return None


def _parents(module: str) -> Iterator[str]:
    while "." in module:
        module = module.rpartition(".")[0]
        yield module


def _imported(file: Path, module: str) -> Iterator[str]:
    content = file.read_bytes()
    tree = ast.parse(content, str(file))
    # Only a dotted name is within an expression, and statements are a tenth of a tree's nodes.
    for node in ast.walk(tree) if _DOTTED.encode() in content else _statements(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=source, names=names, level=level):
                base = _absolute(file, module, level, source)
                yield base
                # The name imported from a package may be a submodule.
                yield from (f"{base}.{alias.name}" for alias in names)
            case ast.Call(args=[ast.Constant(value=str(named))], func=function):
                # Dotted names are `DottedName(…)` or `DottedName[…](…)`.
                callee = function.value if isinstance(function, ast.Subscript) else function
                if isinstance(callee, ast.Name) and callee.id == _DOTTED:
                    yield named.partition(":")[0]
            case _:
                pass


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    waiting: list[ast.AST] = [*tree.body]
    while waiting:
        node = waiting.pop()
        yield node
        for name in _BLOCKS:
            waiting += getattr(node, name, ())


def _absolute(file: Path, module: str, level: int, source: str | None) -> str:
    if level == 0:
        return source or ""
    steps = module.split(".") if file.name == "__init__.py" else module.split(".")[:-1]
    package = steps[: len(steps) - (level - 1)]
    return ".".join([*package, *([source] if source else [])])
