"""Configs of the shapes that LiteLLM ships as examples, and what each becomes here.

`tests/litellm_examples.py` runs the originals.
"""

from pathlib import Path

import pytest
import yaml

from tests.unit.cli.catalog.imports import BEDROCK, CLAUDE, OPENAI, base, entry, imported, run
from tests.unit.cli.catalog.published import price_map
from tests.unit.routing.test_routing_yaml import FILE as SHIPPED
from tollgate.routing.file.load import load

RED = "\x1b[31m"
FOUNDRY = {
    "model": "azure_ai/claude-haiku-4-5",
    "api_base": "https://acme.services.ai.azure.com",
    "api_key": "os.environ/FOUNDRY_API_KEY",
}
SERVER = {"model": "openai/gpt-4o", "api_base": "https://llm.acme.example/v1"}


def test_claude_in_microsoft_foundry_has_anthropics_api(tmp_path: Path) -> None:
    """Foundry serves Claude at /anthropic/v1 only; at /openai/v1 each request would be a 404."""
    other = FOUNDRY | {"model": "azure_ai/gpt-4.1"}
    routing, said = imported(tmp_path, entry("haiku", FOUNDRY), entry("gpt", other))
    [haiku] = routing.models[routing.aliases["haiku"].to].endpoints
    row = routing.providers[haiku.provider]
    ours = routing.providers[routing.models["openai/gpt-4.1"].endpoints[0].provider]
    assert (row.codec, row.auth) == ("anthropic", "x-api-key")
    assert row.base_url == "https://acme.services.ai.azure.com/anthropic/v1"
    assert row.key is not None
    assert row.key.env == "FOUNDRY_API_KEY"
    # An older Claude takes a budget for reasoning, wherever it runs.
    assert haiku.dialect is not None
    assert haiku.dialect.reasoning == "claude_budget"
    assert (ours.codec, ours.base_url) == (
        "openai_chat",
        "https://acme.services.ai.azure.com/openai/v1",
    )
    assert "Served otherwise: 0." in said


def test_a_deployment_of_azure_speaks_as_openai_does(tmp_path: Path) -> None:
    """Newer models refuse `max_tokens`, which a row without a dialect sends."""
    azure = {"model": "azure/gpt-5-mini", "api_base": "https://acme.openai.azure.com"}
    routing, _ = imported(tmp_path, entry("mini", azure))
    row = routing.providers["azure-acme"]
    assert row.dialect.output_limit_field == "max_completion_tokens"
    assert row.key is not None
    assert row.key.env == "AZURE_API_KEY"


def test_models_of_vertex_ai_go_to_the_provider_of_their_format(tmp_path: Path) -> None:
    """The base file has both providers of docs/examples/vertex.yaml, but not with these models."""
    vertex = yaml.safe_load((SHIPPED.parent / "docs/examples/vertex.yaml").read_text())
    merged = yaml.safe_load(base())
    merged["providers"] |= vertex["providers"]
    path = tmp_path / "with_vertex.yaml"
    path.write_text(yaml.safe_dump(merged))
    params = {"vertex_project": "acme", "input_cost_per_token": 0, "output_cost_per_token": 0}
    entries = [
        entry("claude", params | {"model": "vertex_ai/claude-haiku-4-5@20251001"}),
        entry("gemini", params | {"model": "vertex_ai/gemini-9-pro"}),
    ]
    said = run(tmp_path, {"model_list": entries}, "--base", str(path), color=True).stderr
    routing = load(tmp_path / "new.yaml")
    [claude] = routing.models[routing.aliases["claude"].to].endpoints
    [gemini] = routing.models[routing.aliases["gemini"].to].endpoints
    assert (claude.provider, gemini.provider) == ("claude-on-vertex", "vertex")
    assert claude.dialect is not None
    assert claude.dialect.reasoning == "claude_budget"
    # The project decides where prompts are processed, so the difference is red.
    assert f"{RED}model_list gemini (vertex_ai/gemini-9-pro): its vertex_project is" in said


def test_a_wildcard_is_replayed_for_each_of_its_names(tmp_path: Path) -> None:
    """The replay of a config with wildcards once reported 0 requests."""
    wild = [entry(f"{each}/*", {"model": f"{each}/*"}) for each in ("anthropic", "openai")]
    _, said = imported(tmp_path, *wild)
    assert "= anthropic/* (names: 3): plain, tools, image, long\n" in said
    assert "= openai/* (names: 1): embedding request\n" in said
    assert "appears twice" not in said
    assert "Served otherwise: 0." in said


def test_a_name_that_does_not_chat_is_replayed_too(tmp_path: Path) -> None:
    mapped = {"litellm_provider": "cohere", "mode": "rerank", "input_cost_per_query": 0.002}
    wheel = price_map(tmp_path, cohere__ranker=mapped)
    entries = [
        entry("vec", OPENAI | {"model": "openai/text-embedding-3-small"}),
        entry("rank", {"model": "cohere/ranker", "api_base": "os.environ/RANKER"}),
    ]
    said = run(tmp_path, {"model_list": entries}, "--price-map", str(wheel), color=True).stderr
    assert "= vec: embedding request\n" in said
    assert f"{RED}! rank: rerank request\n    before  cohere/ranker\n    after   refused\n" in said
    assert "because not imported: cohere/ranker" in said
    assert "Replayed requests: 2; names: 2. Served otherwise: 1." in said


@pytest.mark.parametrize(
    ("key", "says"),
    [
        ({"api_key": "sk-not-copied"}, "the key in the config was not copied: set it as key"),
        ({}, "api_key is missing, so LiteLLM sends OPENAI_API_KEY"),
    ],
)
def test_a_server_that_loses_its_key_is_red(tmp_path: Path, key: dict[str, str], says: str) -> None:
    """The file is valid without a key, but the server may refuse each request."""
    said = run(tmp_path, {"model_list": [entry("own", SERVER | key)]}, color=True).stderr
    assert f"{RED}model_list own (openai/gpt-4o): {says}" in said


def test_two_names_of_the_same_deployment_are_one_model(tmp_path: Path) -> None:
    """LiteLLM's Bedrock routes `invoke` and `converse` reach the same endpoint here."""
    plain = BEDROCK | {"model": BEDROCK["model"].replace("converse/", "")}
    routing, _ = imported(
        tmp_path, entry("native", CLAUDE), entry("invoke", plain), entry("converse", BEDROCK)
    )
    assert routing.aliases["invoke"] == routing.aliases["converse"]
    assert len(routing.models) == 2


def test_an_entry_without_a_model_is_red(tmp_path: Path) -> None:
    config = {"model_list": [entry("gpt", OPENAI), {"model_name": "gpt-3.5-turbo"}]}
    said = run(tmp_path, config, color=True).stderr
    assert f"{RED}model_list, entry 2: model_name or litellm_params.model is missing" in said


def test_what_litellm_runs_for_a_model_is_red_and_what_is_off_is_not_listed(
    tmp_path: Path,
) -> None:
    config = {
        "model_list": [entry("gpt", OPENAI), entry("auto", {"model": "auto_router/adaptive"})],
        "search_tools": [{"search_tool_name": "x"}],
        "mcp_servers": {"wiki": {"url": "https://mcp.acme.example"}},
        "policies": {"strict": {}},
        "general_settings": {"store_model_in_db": False},
        "litellm_settings": {"cache": True, "websearch_interception_params": {}},
    }
    said = run(tmp_path, config, color=True).stderr
    for line in (
        "search_tools: write `server_tools.web_search`",
        "litellm_settings.websearch_interception_params: write `server_tools.web_search`",
        "mcp_servers: the gateway does not call MCP servers",
        "policies: write them as `guardrails`",
        "model_list auto (auto_router/adaptive): routes do not choose a model by the content",
    ):
        assert RED + line in said
    assert "litellm_settings.cache: write `cache` in a route: docs/routing.md#cache" in said
    assert "store_model_in_db" not in said
