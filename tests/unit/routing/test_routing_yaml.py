"""The routing.yaml that ships: it is right, its prices are true, its schema is current."""

import json
from datetime import date
from functools import cache
from pathlib import Path
from typing import get_args

import pytest
import yaml
from jsonschema import Draft202012Validator

from tests.cells import cells
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import WIRE_FORMATS, FormatName
from tollgate.providers.ports.wire_format import TransportName
from tollgate.routing.file.compile import canonical_json
from tollgate.routing.file.load import inspect, load
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.routing_file import Routing, RoutingFile, json_schema_text
from tollgate.routing.scalars import merge_section
from tollgate.routing.schema import EndpointSection
from tollgate.wiring.providers import TRANSPORTS

ROOT = Path(__file__).parents[3]
FILE = ROOT / "routing.yaml"
SIMULATOR = ROOT / "infra" / "simulator.yaml"
SCHEMA = ROOT / "infra" / "schema" / "routing.v1.json"
BAD = Path(__file__).parent / "bad"

# What only `tollgate check` can know: YAML itself, references, dates and the sense of numbers.
BEYOND_A_SCHEMA = (
    "R001_alias",
    "R001_indent",
    "R001_not_yaml",
    "R001_quote",
    "R001_tab",
    "R001_tag",
    "R002",
    "R006",
    "R007",
    "R008",
    "R010",
    "R011",
    "R012",
    "R013",
    "R02",
    "R031",
    "R032",
    "R033",
    "R04",
    "R05",
    "R06",
    "R07",
)


def test_the_file_has_no_errors_with_or_without_the_simulator() -> None:
    assert inspect(FILE, dev=True).errors == ()
    assert inspect(FILE, dev=False).errors == ()


def test_the_file_may_name_exactly_the_codecs_and_transports_there_are() -> None:
    assert set(get_args(FormatName)) == WIRE_FORMATS.keys()
    assert set(get_args(TransportName)) == TRANSPORTS.keys()
    assert {name for row in WIRE_FORMATS.values() for name in row.transports} == TRANSPORTS.keys()


def test_c65_no_caller_chooses_a_tier_that_its_price_does_not_know() -> None:
    routing = load(FILE)
    asked = {
        endpoint.provider
        for model in routing.models.values()
        for endpoint in model.endpoints
        if model.kind == "chat"
        and "service_tier"
        not in merge_section(_dialect(routing, endpoint), endpoint.dialect).refuses
    }
    # Anthropic's tiers are bought ahead, Groq's flex costs what the others do (both 2026-11-21).
    assert asked == {"anthropic", "groq"}


def _dialect(routing: Routing, endpoint: EndpointSection) -> Dialect:
    return routing.providers[endpoint.provider].dialect


def test_openai_is_asked_in_its_own_dialect() -> None:
    dialect = load(FILE).providers["openai"].dialect
    assert dialect.output_limit_field == "max_completion_tokens"
    assert dialect.developer_role


def test_every_provider_with_a_key_names_both_of_its_homes() -> None:
    keys = {slug: row.key for slug, row in load(FILE).providers.items() if row.key}
    assert keys
    for slug, key in keys.items():
        # Two formats of one account share its key.
        account = slug.removesuffix("-responses").removesuffix("-native")
        assert key.secret == f"tollgate/{account}"
        assert key.env == f"{account.upper()}_API_KEY"


def test_c25_every_provider_has_a_name_as_openrouter_shows_it() -> None:
    assert {slug for slug, row in load(FILE).providers.items() if row.name is None} == set()


def test_the_simulator_answers_only_to_test_names() -> None:
    production, development = load(FILE), load(FILE, dev=True)
    added = (development.models.keys() - production.models.keys()) | (
        development.routes.keys() - production.routes.keys()
    )
    assert {"test/echo", "test/tools", "test/slow", "test/echo:429", "test/fallback"} <= added
    assert all(name.startswith("test/") for name in added)
    for slug in development.models.keys() - production.models.keys():
        # Agents always send tools: a fault must not turn into a refusal of theirs.
        model = development.models[slug]
        takes_tools = model.kind == "chat" and slug != "test/complete"
        assert ("tools" in model.supports) is takes_tools
        upstream = model.endpoints[0].upstream
        # Two formats have an echo.
        assert slug == f"test/{upstream}" or (slug, upstream) == ("test/complete", "echo")


def test_the_schema_for_editors_is_current() -> None:
    assert SCHEMA.read_text(encoding="utf-8") == json_schema_text()


def test_the_schema_accepts_a_file_with_every_section() -> None:
    content = as_editors_read((BAD.parent / "whole.yaml").read_text(encoding="utf-8"))
    assert [error.message for error in editors_validator().iter_errors(content)] == []
    assert isinstance(content, dict)
    assert content.keys() | {"catalog", "dev", "include"} == RoutingFile.model_fields.keys()


@pytest.mark.parametrize("file", [FILE, SIMULATOR], ids=lambda file: file.name)
def test_the_schema_named_in_the_first_line_is_there_and_accepts_the_file(file: Path) -> None:
    content = file.read_text(encoding="utf-8")
    reference = content.splitlines()[0].removeprefix("# yaml-language-server: $schema=")
    schema = json.loads((file.parent / reference).read_text(encoding="utf-8"))
    Draft202012Validator.check_schema(schema)
    validator = Draft202012Validator(schema)
    assert [error.message for error in validator.iter_errors(as_editors_read(content))] == []


@cells("case", sorted(path.stem for path in BAD.glob("R*.yaml")))
def test_the_checker_refuses_every_bad_file_and_the_schema_what_a_schema_can_see(
    case: str,
) -> None:
    file = BAD / f"{case}.yaml"
    assert inspect(file, dev=True, today=date(2026, 11, 21)).errors
    if not case.startswith(BEYOND_A_SCHEMA):
        assert not editors_validator().is_valid(as_editors_read(file.read_text(encoding="utf-8")))


@cache
def editors_validator() -> Draft202012Validator:
    return Draft202012Validator(json.loads(json_schema_text()))


def as_editors_read(content: str) -> object:
    """Plain values, with dates as text."""
    return json.loads(json.dumps(yaml.safe_load(content), default=str))


def test_c44_the_first_model_of_fast_needs_no_key() -> None:
    routing = load(FILE)
    fast = routing.routes["fast"]
    (first,) = fast.all_rules[0].steps[0]
    rows = [routing.providers[it.provider] for it in routing.models[first].endpoints]
    assert [(row.transport, row.key) for row in rows] == [("bedrock_runtime", None)]
    assert "provider_auth" in fast.next_on


@pytest.mark.parametrize(
    ("name", "slug"),
    [
        ("claude-sonnet-4.5", "anthropic/claude-sonnet-4.5"),
        ("deepseek-ai/DeepSeek-V3", "deepseek/deepseek-v3"),
        ("deepseek-ai/DeepSeek-R1", "deepseek/deepseek-r1"),
        ("meta-llama/Meta-Llama-3.1-405B-Instruct", "meta-llama/llama-3.1-405b-instruct"),
        ("meta-llama/Meta-Llama-3.1-70B-Instruct", "meta-llama/llama-3.1-70b-instruct"),
        ("Qwen/Qwen2.5-72B-Instruct", "qwen/qwen2.5-72b-instruct"),
        ("qwen3-4b", "qwen/qwen3-4b"),
    ],
)
def test_c19_the_names_in_the_examples_of_other_gateways_lead_to_a_model(
    name: str, slug: str
) -> None:
    catalog = Catalog.from_json(canonical_json(load(FILE)))
    assert catalog.target(name) == slug
    assert slug in catalog.models


def test_c19_there_are_models_and_providers_to_choose_from() -> None:
    routing = load(FILE)
    assert len(routing.models) >= 150
    assert len(routing.providers) >= 30
    served = {it.provider for model in routing.models.values() for it in model.endpoints}
    assert served == routing.providers.keys()
