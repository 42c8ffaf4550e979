"""Parsed source file, the names that its imports bind, and violations of rules."""

import ast
import gc
import io
import re
import tokenize
from collections.abc import Callable, Iterator, Set
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar

_TOP = Path(__file__).parents[2]
_Node = TypeVar("_Node", bound=ast.AST)
# Python 3.12 splits formatted strings into several tokens.
_PROSE = {
    tokenize.COMMENT,
    tokenize.STRING,
    *(getattr(tokenize, name) for name in ("FSTRING_MIDDLE",) if hasattr(tokenize, name)),
}


@dataclass(frozen=True)
class Finding:
    path: PurePosixPath
    line: int
    rule: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.rule}"


@dataclass(frozen=True)
class Import:
    """Imported name in absolute form: `from a.b import c` is `a.b.c`, bound as `c`."""

    name: str
    local_name: str
    refers_to: str
    line: int
    is_deferred: bool = False
    """True for an import within a function, which happens only when the function is called."""


@dataclass(frozen=True)
class Source:
    """Python file by its path from the top of the checkout.

    The file is parsed, walked and tokenized once, when the first rule needs this.
    """

    path: PurePosixPath
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        return ast.parse(self.text)

    def nodes(self, *types: type[_Node]) -> list[_Node]:
        """Return the nodes of exactly these types in the order of their lines, modules first."""
        found = [node for type_ in types for node in self._nodes.get(type_, ())]
        if len(types) > 1:
            found.sort(key=_position)
        return found

    def comments(self, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], int]]:
        """Yield the pattern's matches in comments, with their lines."""
        return self._search(pattern, {tokenize.COMMENT})

    def prose(self, pattern: re.Pattern[str]) -> Iterator[tuple[re.Match[str], int]]:
        """Yield the pattern's matches in comments and string literals, with their lines."""
        return self._search(pattern, _PROSE)

    @cached_property
    def module(self) -> str:
        """Dotted name for imports; `functions/` is on the import path."""
        parts = self.path.with_suffix("").parts
        if parts[0] == "functions":
            parts = parts[1:]
        if parts[-1] == "__init__":
            parts = parts[:-1]
        return ".".join(parts)

    @cached_property
    def imports(self) -> tuple[Import, ...]:
        return tuple(self._imports())

    @cached_property
    def uses(self) -> tuple[tuple[str, int], ...]:
        """Full dotted names of imported objects that the file uses, with their lines.

        After `import datetime as dt`, `dt.date.today` is `datetime.date.today`.
        """
        return tuple(sorted(self._uses(), key=lambda use: use[1]))

    @cached_property
    def dotted_names(self) -> tuple[tuple[str, int], ...]:
        """Objects that `DottedName(…)` and `DottedName[…](…)` name, with their lines."""
        return tuple(self._dotted_names())

    def finding(self, line: int, rule: str) -> Finding:
        return Finding(self.path, line, rule)

    @cached_property
    def _nodes(self) -> dict[type[ast.AST], list[Any]]:
        found: dict[type[ast.AST], list[Any]] = {}
        for node in ast.walk(self.tree):
            found.setdefault(type(node), []).append(node)
        return found

    @cached_property
    def _prose(self) -> tuple[tokenize.TokenInfo, ...]:
        tokens = tokenize.generate_tokens(io.StringIO(self.text).readline)
        return tuple(token for token in tokens if token.type in _PROSE)

    def _search(
        self, pattern: re.Pattern[str], types: Set[int]
    ) -> Iterator[tuple[re.Match[str], int]]:
        # Tokenizing takes longer than parsing, and most files contain no match.
        if not pattern.search(self.text):
            return
        for token in self._prose:
            if token.type in types:
                for found in pattern.finditer(token.string):
                    yield found, token.start[0] + token.string.count("\n", 0, found.start())

    def _uses(self) -> Iterator[tuple[str, int]]:
        meanings = {found.local_name: found.refers_to for found in self.imports}
        for node in self.nodes(ast.Name) + self.nodes(ast.Attribute):
            first, *rest = _chain(node)
            if first in meanings:
                yield ".".join([meanings[first], *rest]), node.lineno

    def _imports(self) -> Iterator[Import]:
        imports = self.nodes(ast.Import, ast.ImportFrom)
        # Only an indented import can be within a function.
        deferred = self._within_functions() if any(node.col_offset for node in imports) else set()
        for node in imports:
            late = node in deferred
            if isinstance(node, ast.Import):
                for alias in node.names:
                    first = alias.name.partition(".")[0]
                    local, refers_to = (
                        (alias.asname, alias.name) if alias.asname else (first, first)
                    )
                    yield Import(alias.name, local, refers_to, node.lineno, late)
            else:
                for alias in node.names:
                    name = f"{self._imported_from(node)}.{alias.name}"
                    yield Import(name, alias.asname or alias.name, name, node.lineno, late)

    def _dotted_names(self) -> Iterator[tuple[str, int]]:
        # Most files name no object, and parsing them takes seconds of each test process.
        if "DottedName" not in self.text:
            return
        for node in self.nodes(ast.Call):
            callee = node.func.value if isinstance(node.func, ast.Subscript) else node.func
            match callee, node.args:
                case ast.Name(id="DottedName"), [ast.Constant(value=str(name))]:
                    yield name, node.lineno
                case _:
                    pass

    def _within_functions(self) -> set[ast.AST]:
        functions = self.nodes(ast.FunctionDef, ast.AsyncFunctionDef)
        return {child for function in functions for child in ast.walk(function)}

    def _imported_from(self, node: ast.ImportFrom) -> str:
        if not node.level:
            return node.module or ""
        levels_up = node.level - (self.path.name == "__init__.py")
        package = self.module.split(".")
        package = package[: len(package) - levels_up]
        return ".".join([*package, node.module] if node.module else package)


@cache
def sources_of(folder: str) -> tuple[Source, ...]:
    """Return the Python files below a folder of the checkout, which all rules of a process share.

    Trees have no cycles. Searching their 500,000 nodes for some took half of the rules' time, so
    garbage collection is off until they are parsed, and skips them afterwards.
    """
    found = tuple(
        Source(PurePosixPath(path.relative_to(_TOP)), path.read_text(encoding="utf-8"))
        for path in sorted((_TOP / folder).rglob("*.py"))
    )
    gc.disable()
    for source in found:
        source.nodes(ast.Module)
    gc.freeze()
    gc.enable()
    return found


Rule = Callable[[Source], Iterator[Finding]]


def _position(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _chain(node: ast.expr) -> list[str]:
    """Return the parts of `a.b.c`; the first part is empty if it is not a plain name."""
    match node:
        case ast.Name():
            return [node.id]
        case ast.Attribute():
            return [*_chain(node.value), node.attr]
        case _:
            return [""]
