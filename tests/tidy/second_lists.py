"""Rule that a set of names is listed once, since a second list would have to be kept in step.

A list is a literal set, list, tuple or `Literal[…]`, the keys of a literal dict, or the words of a
`case` with alternatives. A list repeats the names if all its words are among them. A table that
maps to a provider's field names contains other words as well, so it does not.
"""

import ast
from collections.abc import Collection, Iterator

from tests.tidy.source import Finding, Source


def second_lists(
    source: Source, names: Collection[str], *, at_least: int, home: str
) -> Iterator[Finding]:
    """Yield each list of at least `at_least` of the names; messages name `home` as their place."""
    known = set(names)
    for node in source.nodes(ast.Set, ast.List, ast.Tuple, ast.Dict, ast.MatchOr):
        words = _words(node)
        if len(words) >= at_least and words <= known:
            listed = ", ".join(sorted(words))
            yield source.finding(getattr(node, "lineno", 1), f"{listed}: listed in {home} already")


def _words(node: ast.AST) -> set[str]:
    """Return the strings of a list; empty if any element is not a string."""
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
