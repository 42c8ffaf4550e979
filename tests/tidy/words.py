"""Rules on how docstrings begin, and on words to avoid in comments, docstrings and messages."""

import ast
import re
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

from tests.tidy.source import Finding, Rule, Source

# Verbs that begin the docstrings of functions. New verbs are added to this file.
VERBS = frozenset(Path(__file__).with_name("verbs.txt").read_text().split())
# Words with which docstrings of modules, classes and properties must not begin.
_NO_BEGINNING = frozenset(
    {
        "all",
        "how",
        "it",
        "its",
        "nobody",
        "one's",
        "such",
        "that",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "what",
        "whatever",
        "when",
        "where",
        "whether",
        "which",
        "whichever",
        "who",
        "whoever",
        "whom",
        "whose",
        "why",
    }
)
_PLAIN = {
    r"makes? no sense": "corrupt",
    r"kept back": "rejected, withheld",
    r"\bbury|\bburied": "tombstone",
    r"\bwhoever\b": "the caller, the operator",
    r"\bnobody of us\b": "not written by Tollgate",
    r"\b(is|are|was|were|be|been) (told|said|asked)\b": "reported, stated, requested",
    r"\bwishes\b": "parameters",
}
_PLAIN_PATTERN = re.compile("|".join(f"(?P<w{i}>{word})" for i, word in enumerate(_PLAIN)), re.I)
_WORD = re.compile(r"[A-Za-z']+")
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def docstrings_begin_plainly(source: Source) -> Iterator[Finding]:
    if source.path.parts[0] == "tests":
        return
    for node in source.nodes(ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef):
        docstring = ast.get_docstring(node, clean=False)
        if docstring is None:
            continue
        first = _WORD.match(docstring.strip())
        word = first[0].lower() if first else ""
        line = 1 if isinstance(node, ast.Module) else node.lineno
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _is_property(node):
            if word not in VERBS:
                yield source.finding(line, f"{node.name}: begin with a verb, not {word!r}")
        elif word in _NO_BEGINNING:
            yield source.finding(line, f"begin with the thing itself, not with {word!r}")


def descriptions_of_fields_begin_plainly(source: Source) -> Iterator[Finding]:
    if source.path.parts[0] == "tests":
        return
    for node in source.nodes(ast.ClassDef):
        for described, beside in pairwise(node.body):
            if not isinstance(described, ast.AnnAssign):
                continue
            match beside:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    first = _WORD.match(text.strip())
                    if first is not None and first[0].lower() in _NO_BEGINNING:
                        yield source.finding(
                            beside.lineno, f"begin with the thing itself, not with {first[0]!r}"
                        )


def words_are_plain(source: Source) -> Iterator[Finding]:
    if source.path.parts[0] == "tests":
        return
    for found, line in source.prose(_PLAIN_PATTERN):
        better = list(_PLAIN.values())[int((found.lastgroup or "w0")[1:])]
        yield source.finding(line, f"{found[0]!r}: write {better}")


def _is_property(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(
        ast.unparse(decorator).rpartition(".")[2] in {"property", "cached_property", "setter"}
        for decorator in node.decorator_list
    )


RULES: tuple[Rule, ...] = (
    docstrings_begin_plainly,
    descriptions_of_fields_begin_plainly,
    words_are_plain,
)
