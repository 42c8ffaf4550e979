"""Rule that control flow never depends on text written for people."""

import ast
from collections.abc import Iterator

from tests.tidy.layers import part_of
from tests.tidy.source import Finding, Rule, Source

# Folders whose control flow decides what is served, refused or billed.
_DECIDING = ("engine", "routing")
# Names of values that are sentences for people, from the product or a provider.
_PROSE = frozenset({"hint", "message", "reason", "reasons", "words"})
_COMPARING = (ast.In, ast.NotIn, ast.Eq, ast.NotEq)
_SEARCHING = frozenset({"count", "endswith", "find", "index", "rfind", "startswith"})
_MATCHING = frozenset({"findall", "finditer", "fullmatch", "match", "search"})


def decisions_read_no_prose(source: Source) -> Iterator[Finding]:
    if (part_of(source.module) or "").partition(".")[0] not in _DECIDING:
        return
    for node in source.nodes(ast.Compare, ast.Call, ast.Match):
        match node:
            case ast.Compare(left=left, ops=ops, comparators=others):
                read = [left, *others] if any(isinstance(op, _COMPARING) for op in ops) else []
            case ast.Call(func=ast.Attribute(value=value, attr=attr), args=args):
                read = [value] if attr in _SEARCHING else args if attr in _MATCHING else []
            case ast.Match(subject=subject, cases=cases):
                read = [subject] if any(_is_text(each.pattern) for each in cases) else []
            case _:
                continue
        for text in read:
            if (name := _name(text)) in _PROSE:
                line = text.lineno
                yield source.finding(line, f"{name}: decide by an enum or a value, not by words")


def _name(node: ast.expr) -> str | None:
    """Return the last name of `a.b.name`, through subscripts and calls such as `.lower()`."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case ast.Subscript(value=inside) | ast.Call(func=ast.Attribute(value=inside)):
            return _name(inside)
        case _:
            return None


def _is_text(pattern: ast.pattern) -> bool:
    match pattern:
        case ast.MatchValue(value=ast.Constant(value=str())):
            return True
        case _:
            return False


RULES: tuple[Rule, ...] = (decisions_read_no_prose,)
