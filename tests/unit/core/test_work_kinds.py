"""Every kind of work has its row in the one table of kinds, and touches few files besides."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final, get_args

from tollgate.core.work.kinds import WORK_KINDS, WorkKind

PRODUCT: Final = Path(__file__).parents[3] / "functions" / "tollgate"
FILES_MAX: Final = 12


def test_every_kind_has_a_row_of_its_own() -> None:
    assert [*WORK_KINDS] == [*get_args(WorkKind)]
    for fact in ("route", "makes"):
        facts = [getattr(row, fact) for row in WORK_KINDS.values()]
        assert sorted({*facts}) == sorted(facts)


def test_a_kind_of_work_touches_at_most_twelve_files() -> None:
    """Rerank is the walk: its inputs, its rate and its server are of no other kind.

    A file that fails this test spells the kind where a row of a table could state the fact. The
    steps are in CONTRIBUTING.md, "a kind of work".
    """
    touched = [path for path in sorted(PRODUCT.rglob("*.py")) if _spells(path, "rerank")]
    assert len(touched) <= FILES_MAX, [str(path.relative_to(PRODUCT)) for path in touched]


def test_prose_and_other_words_are_not_counted(tmp_path: Path) -> None:
    path = tmp_path / "price.py"
    path.write_text('"""Prices of rerankers."""\n\nnote = "for the kind rerank"\n', "utf-8")
    assert not _spells(path, "rerank")
    for code in ('KIND = "rerank"', "from a.rerank import b", "def rerank_all(): ...", "x.rerank"):
        path.write_text(code, "utf-8")
        assert _spells(path, "rerank")


def _spells(path: Path, word: str) -> bool:
    """Return whether code of a file, or its place in the product, has the word in a name."""
    place = path.relative_to(PRODUCT).as_posix() if path.is_relative_to(PRODUCT) else ""
    text = path.read_text(encoding="utf-8")
    # Parsing all files of the product takes seconds, and most do not have the word.
    if word not in text.lower():
        return word in place
    return word in place or any(word in name.lower() for name in _names(ast.parse(text)))


def _names(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name) | ast.arg(arg=name):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.ClassDef(name=name) | ast.alias(name=name):
                yield name
            case ast.keyword(arg=str(name)) | ast.ImportFrom(module=str(name)):
                yield name
            case ast.Constant(value=str(text)) if " " not in text:
                yield text
            case _:
                pass
