"""A parsed source file, the names its imports bind, and what a rule says about it."""

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Finding:
    path: PurePosixPath
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}"


@dataclass(frozen=True)
class Import:
    """One imported name, absolute: `from a.b import c` is `a.b.c`, known in its file as `c`."""

    name: str
    local_name: str
    refers_to: str
    line: int
    # Whether it stands in a function, so that nothing is imported until the function is called.
    is_deferred: bool = False


@dataclass(frozen=True)
class Source:
    """A Python file by its path from the top of the checkout."""

    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    @property
    def module(self) -> str:
        """The dotted name it is imported by; `functions/` itself is on the import path."""
        parts = self.path.with_suffix("").parts
        if parts[0] == "functions":
            parts = parts[1:]
        if parts[-1] == "__init__":
            parts = parts[:-1]
        return ".".join(parts)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        return tuple(self._imports())

    def finding(self, line: int, rule: str) -> Finding:
        return Finding(self.path, line, rule)

    def uses(self) -> Iterator[tuple[str, int]]:
        """Yield what is reached through an import, spelled out, with its line: after
        `import datetime as dt`, `dt.date.today` is `datetime.date.today`."""
        meanings = {found.local_name: found.refers_to for found in self.imports}
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Name | ast.Attribute):
                first, *rest = _chain(node)
                if first in meanings:
                    yield ".".join([meanings[first], *rest]), node.lineno

    def _imports(self) -> Iterator[Import]:
        deferred = {
            child
            for node in ast.walk(self.tree)
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
            for child in ast.walk(node)
        }
        for node in ast.walk(self.tree):
            late = node in deferred
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    local, refers_to = (
                        (alias.asname, alias.name) if alias.asname else (first, first)
                    )
                    yield Import(alias.name, local, refers_to, node.lineno, late)
            elif isinstance(node, ast.ImportFrom):
                for alias in node.names:
                    name = f"{self._imported_from(node)}.{alias.name}"
                    yield Import(name, alias.asname or alias.name, name, node.lineno, late)

    def _imported_from(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        levels_up = node.level - (self.path.name == "__init__.py")
        package = self.module.split(".")
        package = package[: len(package) - levels_up]
        return ".".join([*package, node.module] if node.module else package)


Rule = Callable[[Source], Iterator[Finding]]


def _chain(node: ast.expr) -> list[str]:
    """Return `a.b.c` as its parts; an empty first part stands for what is not a plain name."""
    match node:
        case ast.Name():
            return [node.id]
        case ast.Attribute():
            return [*_chain(node.value), node.attr]
        case _:
            return [""]
