"""docs/routing.md names every key and every code of the check; what guides show passes it."""

import re
from pathlib import Path

from pydantic import BaseModel

from tollgate.providers.dialect import ClaudeDialect, Dialect, GeminiDialect
from tollgate.routing import (
    chains,
    plugin_sections,
    routing_file,
    scalars,
    schema,
    tool_sections,
)
from tollgate.routing.file.load import inspect
from tollgate.routing.scalars import Strict

ROOT = Path(__file__).parents[3]
GUIDE = (ROOT / "docs" / "routing.md").read_text(encoding="utf-8")


def sections() -> list[type[BaseModel]]:
    named = {
        each
        for module in (schema, chains, scalars, routing_file, tool_sections, plugin_sections)
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
    sources = (ROOT / "functions" / "tollgate" / "routing").rglob("*.py")
    raised = {code for path in sources for code in re.findall(r'"(R\d{3})"', path.read_text())}
    documented = set(re.findall(r"^\| (R\d{3}) ", GUIDE, re.MULTILINE))
    assert documented == raised


def test_every_error_code_has_a_bad_file_that_shows_it() -> None:
    bad = (ROOT / "tests" / "unit" / "routing" / "bad").glob("*.txt")
    shown = {code for path in bad for code in re.findall(r"\[(R\d{3})\]", path.read_text())}
    assert shown == set(re.findall(r"^\| (R\d{3}) ", GUIDE, re.MULTILINE))


def test_the_provider_and_the_model_that_the_guide_adds_pass_the_check(tmp_path: Path) -> None:
    guide = (ROOT / "docs" / "adding-a-provider.md").read_text(encoding="utf-8")
    row, model = re.findall(r"```yaml\n(.*?)```", guide, re.DOTALL)
    assert (row.startswith("providers:"), model.startswith("models:")) == (True, True)
    file = tmp_path / "routing.yaml"
    file.write_text(f"version: 1\n{row}{model}", encoding="utf-8")
    inspection = inspect(file, dev=False)
    assert inspection.problems == ()
    assert inspection.routing
    assert "acme/anvil-1" in inspection.routing.models
