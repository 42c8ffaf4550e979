"""Names that stand in one list only: a second list of them would have to be kept in step by hand.

A list is a literal set, list, tuple or `Literal[…]`, the keys of a literal dict, or the words of a
`case` with alternatives. It is a second list if every word in it is one of the names: a table that
maps to a provider's own field names holds other words too, and so is none.
"""

import ast
from collections.abc import Collection, Iterator

from tests.tidy.source import Finding, Source


def second_lists(
    source: Source, names: Collection[str], *, at_least: int, home: str
) -> Iterator[Finding]:
    """Yield each list of so many of the names or more; `home` is told as where they belong."""
    known = set(names)
    for node in source.nodes(ast.Set, ast.List, ast.Tuple, ast.Dict, ast.MatchOr):
        words = _words(node)
        if len(words) >= at_least and words <= known:
            listed = ", ".join(sorted(words))
            yield source.finding(getattr(node, "lineno", 1), f"{listed}: listed in {home} already")


def _words(node: ast.AST) -> set[str]:
    """Return the strings of a list; an element that is no string makes it another kind of list."""
    match node:
        case ast.Set(elts=elements) | ast.List(elts=elements) | ast.Tuple(elts=elements):
            values: list[ast.expr | None] = [*elements]
        case ast.Dict(keys=keys):
            values = keys
        case ast.MatchOr(patterns=patterns):
            values = [each.value if isinstance(each, ast.MatchValue) else None for each in patterns]
        case _:
            return set()
    words = {
        value.value
        for value in values
        if isinstance(value, ast.Constant) and isinstance(value.value, str)
    }
    are_all_words = all(isinstance(value, ast.Constant) for value in values)
    return words if are_all_words else set()
