"""docs/routing.md names every key of the file and every code of the check."""

import re
from pathlib import Path

from pydantic import BaseModel

from tollgate.providers.dialect import ClaudeDialect, Dialect, GeminiDialect
from tollgate.routing import chains, schema
from tollgate.routing.scalars import Strict

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "routing.md").read_text(encoding="utf-8")


def sections() -> list[type[BaseModel]]:
    named = {
        each
        for module in (schema, chains)
        for each in vars(module).values()
        if isinstance(each, type)
    }
    own = [Dialect, ClaudeDialect, GeminiDialect]
    return [*own, *(each for each in named if issubclass(each, Strict))]


def test_every_key_is_documented() -> None:
    keys = {
        field.alias or name
        for section in sections()
        for name, field in section.model_fields.items()
    }
    assert len(keys) > 40
    assert {key for key in keys if f"`{key}`" not in GUIDE} == set()


def test_every_error_code_is_documented_and_every_documented_one_is_raised() -> None:
    sources = (ROOT / "functions" / "tollgate" / "routing").glob("*.py")
    raised = {code for path in sources for code in re.findall(r'"(R\d{3})"', path.read_text())}
    documented = set(re.findall(r"^\| (R\d{3}) ", GUIDE, re.MULTILINE))
    assert documented == raised


def test_every_error_code_has_a_bad_file_that_shows_it() -> None:
    bad = (ROOT / "tests" / "unit" / "routing" / "bad").glob("*.txt")
    shown = {code for path in bad for code in re.findall(r"\[(R\d{3})\]", path.read_text())}
    assert shown == set(re.findall(r"^\| (R\d{3}) ", GUIDE, re.MULTILINE))
