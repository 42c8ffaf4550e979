"""`tollgate import litellm` judged by its requests: what serves a name before and after."""

from pathlib import Path
from typing import Any

import pytest

from tests.unit.cli.catalog.imports import BEDROCK, CLAUDE, OPENAI, entry, imported, run
from tests.unit.cli.catalog.published import price_map

DATED = {"model": "anthropic/claude-sonnet-4-5-20250929", "api_key": "os.environ/ANTHROPIC_API_KEY"}
SONNET = {"model": "bedrock/us.anthropic.claude-sonnet-4-5-20250929-v1:0"}
MINI = OPENAI | {"model": "openai/gpt-4o-mini"}
QWEN = {"model": "hosted_vllm/Qwen/Qwen3-32B", "api_base": "http://gpu.internal:8000/v1"}
PRICED = {"input_cost_per_token": 1e-6, "output_cost_per_token": 1e-6}
RED = "\x1b[31m"


def test_deployments_under_a_dated_and_an_undated_id_keep_what_their_model_can_do(
    tmp_path: Path,
) -> None:
    """A snapshot that the base file has under another id once took tools from the whole model."""
    routing, said = imported(
        tmp_path,
        entry("claude-sonnet", SONNET),
        entry("claude-sonnet", DATED),
        entry("gpt-4o-mini", MINI),
        litellm_settings={"default_fallbacks": ["gpt-4o-mini"]},
    )
    model = routing.models["anthropic/claude-sonnet-4.5"]
    assert [each.provider for each in model.endpoints] == ["bedrock", "anthropic"]
    assert (model.max_output, model.input) == (64_000, ("text", "image", "pdf"))
    assert {"tools", "reasoning"} < {*model.supports}
    assert "= claude-sonnet: plain, tools, image, long\n" in said
    assert said.endswith("Replayed requests: 8; names: 2. Served otherwise: 0.\n")


@pytest.mark.parametrize(
    "params",
    [QWEN, OPENAI | {"model": "openai/o3"}, OPENAI | PRICED | {"model": "openai/nobody-knows"}],
)
def test_what_is_unknown_of_a_model_is_allowed(tmp_path: Path, params: dict[str, Any]) -> None:
    """A request for a server of one's own must not leave for the fallback's provider."""
    _, said = imported(
        tmp_path,
        entry("mine", params),
        entry("gpt-4o-mini", MINI),
        litellm_settings={"default_fallbacks": ["gpt-4o-mini"]},
    )
    assert "= mine: plain, tools, image, long\n" in said
    assert "Served otherwise: 0." in said


def test_a_limit_that_the_source_does_not_have_is_red(tmp_path: Path) -> None:
    """The config denies pictures, which LiteLLM sends to the provider all the same."""
    own = QWEN | {"model": "hosted_vllm/house"}
    config = {
        "model_list": [
            entry("mine", own, supports_vision=False, max_input_tokens=4096),
            entry("lost", {"model": "petals/x"}),
            entry("gpt-4o-mini", MINI),
        ],
        "litellm_settings": {"fallbacks": [{"mine": ["gpt-4o-mini"]}]},
    }
    said = run(tmp_path, config, color=True).stderr
    assert f"{RED}! mine: image\n" in said
    assert "    after   openai/gpt-4o-mini\n" in said
    assert "because another model serves: litellm/mine does not take image input" in said
    assert f"{RED}! mine: long\n" in said
    assert f"{RED}! lost: plain, tools, image, long\n" in said
    assert f"{RED}model_list lost (petals/x): the base file has no provider petals" in said
    assert "Replayed requests: 12; names: 3. Served otherwise: 6." in said


def test_models_of_one_name_are_drawn_by_weight_and_keep_their_slugs(tmp_path: Path) -> None:
    routing, said = imported(
        tmp_path,
        entry("smart", OPENAI | {"weight": 3}),
        entry("smart", CLAUDE | {"weight": 1}),
        entry("mini", MINI),
        litellm_settings={"fallbacks": [{"smart": ["mini"]}, {"mini": ["smart"]}]},
    )
    drawn = {"openai/gpt-4o": 75, "anthropic/claude-haiku-4.5": 25}
    steps = [dict(step) for step in routing.routes["smart"].all_rules[0].steps]
    assert steps == [drawn, {"openai/gpt-4o-mini": 100}]
    assert dict(routing.routes["mini"].all_rules[0].steps[1]) == drawn
    assert "Served otherwise: 0." in said


def test_deployments_with_an_order_are_tried_in_that_order(tmp_path: Path) -> None:
    routing, _ = imported(
        tmp_path, entry("smart", OPENAI | {"order": 2}), entry("smart", CLAUDE | {"order": 1})
    )
    steps = [dict(step) for step in routing.routes["smart"].all_rules[0].steps]
    assert steps == [{"anthropic/claude-haiku-4.5": 100}, {"openai/gpt-4o": 100}]


def test_a_wildcard_becomes_the_models_of_the_base_file(tmp_path: Path) -> None:
    """A stated name outranks a wildcard, and names that a model has anyway are no aliases."""
    wild = CLAUDE | {"model": "anthropic/*"}
    routing, said = imported(
        tmp_path,
        entry("anthropic/*", wild),
        entry("eu-*", wild),
        entry("anthropic/claude-haiku-4-5", BEDROCK),
    )
    assert routing.aliases["eu-claude-haiku-4-5"].to != "anthropic/claude-haiku-4.5"
    [haiku] = routing.models[routing.aliases["anthropic/claude-haiku-4-5"].to].endpoints
    assert haiku.provider == "bedrock"
    assert "anthropic/claude-opus-4-7" not in routing.aliases
    assert "anthropic/claude-opus-4.7" in routing.models
    assert "models of the base file have such names; other names are refused" in said


def test_an_address_in_the_environment_is_an_option(tmp_path: Path) -> None:
    params = {"model": "openai/gpt-5-mini", "api_base": "os.environ/PROXY_BASE"}
    address = "PROXY_BASE=https://llm.acme.example/v1"
    config = {"model_list": [entry("mini", params)]}
    result = run(tmp_path, config, "--address", address)
    assert "https://llm.acme.example/v1" in (tmp_path / "new.yaml").read_text()
    assert "after   openai-llm/gpt-5-mini" in result.stderr
    (tmp_path / "new.yaml").unlink()
    assert "write NAME=URL" in run(tmp_path, config, "--address", "PROXY_BASE").output


def test_two_servers_never_become_one_provider(tmp_path: Path) -> None:
    """Two servers on one host, and the address of a proxy before a provider's own API."""
    other = QWEN | {"api_base": "http://gpu.internal:9000/v1"}
    routing, said = imported(
        tmp_path,
        entry("a", QWEN),
        entry("b", other),
        entry("c", CLAUDE | {"api_base": "https://proxy.acme.example"}),
    )
    [a], [b] = (routing.models[routing.aliases[name].to].endpoints for name in ("a", "b"))
    assert routing.providers[a.provider].base_url == "http://gpu.internal:8000/v1"
    assert routing.providers[b.provider].base_url == "http://gpu.internal:9000/v1"
    assert "api_base is not the address of anthropic: add a provider" in said


def test_the_price_map_states_what_the_base_file_lacks(tmp_path: Path) -> None:
    mapped = {
        "litellm_provider": "openai",
        "mode": "chat",
        "input_cost_per_token": 0.000002,
        "output_cost_per_token": 0.000008,
        "max_input_tokens": 200_000,
        "max_output_tokens": 100_000,
        "supports_function_calling": True,
        "supports_vision": False,
    }
    wheel = price_map(tmp_path, openai__o9=mapped)
    config = {"model_list": [entry("o9", OPENAI | {"model": "openai/o9"})]}
    said = run(tmp_path, config, "--price-map", str(wheel)).stderr
    written = (tmp_path / "new.yaml").read_text()
    assert "max_output: 100000" in written
    assert "price: {input: 2.00, output: 8.00, source: litellm 9.8.7" in written
    assert "! o9: image\n" in said
    assert "= o9: plain, tools, long\n" in said


def test_a_wildcard_at_a_server_of_ones_own_keeps_to_names_of_its_own(tmp_path: Path) -> None:
    """The slug of a model is also a name that callers of the source may send elsewhere."""
    own = OPENAI | {"api_base": "https://llm.acme.example/v1"}
    routing, said = imported(
        tmp_path, entry("mine", OPENAI), entry("openai/*", own | {"model": "openai/*"})
    )
    [mine] = routing.models[routing.aliases["mine"].to].endpoints
    [wild] = routing.models["openai/gpt-4o"].endpoints
    assert (mine.provider, wild.provider) == ("openai", "openai-llm")
    assert "models of kind image need a provider with their dialect" in said


def test_an_id_without_a_provider_is_its_vendors(tmp_path: Path) -> None:
    """The base file may list a cloud first, to which LiteLLM does not send a bare id."""
    routing, said = imported(tmp_path, entry("haiku", {"model": "claude-haiku-4-5-20251001"}))
    [haiku] = routing.models["anthropic/claude-haiku-4.5"].endpoints
    assert (haiku.provider, "Served otherwise: 0." in said) == ("anthropic", True)
