"""infra/routing-reference.md has every key and problem of the file; what guides show passes it."""

import json
import re
from pathlib import Path

from tests import routing_reference
from tollgate.routing.file.load import inspect

ROOT = Path(__file__).parents[3]
REFERENCE = routing_reference.PAGE.read_text(encoding="utf-8")
CODE = re.compile(r"^- \*\*(R\d{3})\*\* ", re.MULTILINE)


def test_the_reference_is_made_from_the_schema() -> None:
    made = routing_reference.page(REFERENCE)
    assert made == REFERENCE, "the page is stale: run python -m tests.routing_reference"


def test_every_key_is_documented() -> None:
    schema = json.loads(routing_reference.SCHEMA.read_text(encoding="utf-8"))
    keys = {key for section in (schema, *schema["$defs"].values()) for key in section["properties"]}
    assert len(keys) > 150
    assert {key for key in keys if f"`{key}`" not in REFERENCE} == set()


def test_every_error_code_is_documented_and_every_documented_one_is_raised() -> None:
    sources = (ROOT / "functions" / "tollgate" / "routing").rglob("*.py")
    raised = {code for path in sources for code in re.findall(r'"(R\d{3})"', path.read_text())}
    documented = set(CODE.findall(REFERENCE))
    assert documented == raised


def test_every_error_code_has_a_bad_file_that_shows_it() -> None:
    bad = (ROOT / "tests" / "unit" / "routing" / "bad").glob("*.txt")
    shown = {code for path in bad for code in re.findall(r"\[(R\d{3})\]", path.read_text())}
    assert shown == set(CODE.findall(REFERENCE))


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
