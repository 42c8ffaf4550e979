"""`tollgate import` of configs of other gateways, in the shapes that their pages document."""

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from tests.unit.cli.catalog.imports import base
from tollgate.cli.main import main
from tollgate.routing.file.load import load
from tollgate.routing.routing_file import Routing

RED = "\x1b[31m"
GPT = {"provider": "@openai-prod", "override_params": {"model": "gpt-4o"}}
HAIKU = {"provider": "anthropic", "override_params": {"model": "claude-haiku-4-5"}}
PROVIDERS = ("--provider", "openai-prod=openai")
GATEWAY = """
listen: {host: 0.0.0.0, port: 8080}
oidc: {issuer: https://login.example.com, client_secret: "${OIDC_CLIENT_SECRET}"}
upstreams:
  - {provider: bedrock, region: us-east-1, auth: {}}
  - {name: direct, provider: anthropic, auth: {api_key: "${ANTHROPIC_API_KEY}"}}
managed: {policies: []}
"""


def run(folder: Path, kind: str, text: str, *options: str, color: bool = False) -> Result:
    config = folder / "smart.json"
    config.write_text(text)
    (folder / "base.yaml").write_text(base())
    named = ("--base", str(folder / "base.yaml"), "-o", str(folder / "new.yaml"), *options)
    return CliRunner().invoke(main, ["import", kind, str(config), *named], color=color)


def imported(folder: Path, kind: str, text: str, *options: str) -> tuple[Routing, str]:
    result = run(folder, kind, text, *options)
    assert result.exit_code == 0, result.output
    return load(folder / "new.yaml"), result.stderr


def portkey(folder: Path, config: dict[str, Any], *options: str) -> tuple[Routing, str]:
    return imported(folder, "portkey", json.dumps(config), *PROVIDERS, *options)


def steps(routing: Routing, name: str) -> list[dict[str, int]]:
    return [dict(step) for step in routing.routes[name].all_rules[0].steps]


def test_weighted_targets_of_portkey_are_drawn_by_their_weights(tmp_path: Path) -> None:
    config = {
        "strategy": {"mode": "loadbalance"},
        "targets": [GPT | {"weight": 0.7}, HAIKU | {"weight": 0.3}, HAIKU | {"weight": 0}],
        "retry": {"attempts": 2},
        "cache": {"mode": "simple", "max_age": 60},
    }
    routing, said = portkey(tmp_path, {"success": True, "data": {"config": config}})
    assert steps(routing, "smart") == [{"openai/gpt-4o": 70, "anthropic/claude-haiku-4.5": 30}]
    assert routing.defaults.retry.retries_max == 2
    assert "cache of smart: answers are stored only under an Idempotency-Key" in said
    assert "target of smart: a target with weight 0 is left out" in said
    assert "= smart: plain, tools, image, long" in said


def test_fallbacks_of_portkey_are_tried_in_order(tmp_path: Path) -> None:
    config = {
        "strategy": {"mode": "fallback", "on_status_codes": [400, 401, 429, 500]},
        "targets": [HAIKU, GPT | {"override_params": {"model": "gpt-4o", "temperature": 0}}],
    }
    result = run(tmp_path, "portkey", json.dumps(config), *PROVIDERS, color=True)
    routing = load(tmp_path / "new.yaml")
    assert steps(routing, "smart") == [{"anthropic/claude-haiku-4.5": 100}, {"openai/gpt-4o": 100}]
    assert f"{RED}strategy of smart: status 400 does not lead to the next target" in result.stderr
    assert f"{RED}target smart (openai/gpt-4o): its temperature has no counterpart" in result.stderr


def test_weighted_targets_with_a_fallback_behind_them_stay_weighted(tmp_path: Path) -> None:
    mini = GPT | {"override_params": {"model": "gpt-4o-mini"}}
    both = {"strategy": {"mode": "loadbalance"}, "targets": [GPT, mini]}
    config = {"strategy": {"mode": "fallback"}, "targets": [both, HAIKU]}
    routing, _ = portkey(tmp_path, config)
    assert steps(routing, "smart") == [
        {"openai/gpt-4o": 50, "openai/gpt-4o-mini": 50},
        {"anthropic/claude-haiku-4.5": 100},
    ]


def test_conditions_of_portkey_on_the_model_become_names(tmp_path: Path) -> None:
    config = {
        "strategy": {
            "mode": "conditional",
            "conditions": [
                {"query": {"params.model": {"$eq": "house"}}, "then": "sonnet"},
                {"query": {"params.model": {"$in": ["gpt-4o"]}}, "then": "openai"},
                {"query": {"metadata.plan": {"$eq": "paid"}}, "then": "sonnet"},
            ],
            "default": "sonnet",
        },
        "targets": [{"name": "sonnet", **HAIKU}, {"name": "openai", "virtual_key": "openai-prod"}],
    }
    routing, said = portkey(tmp_path, config)
    targets = {name: alias.to for name, alias in routing.aliases.items()}
    assert targets["house"] == targets["smart"] == "anthropic/claude-haiku-4.5"
    assert targets["gpt-4o"] == "openai/gpt-4o"
    assert "condition 3: only $eq and $in of params.model are imported" in said


def test_what_portkey_decides_otherwise_is_red_and_no_key_is_copied(tmp_path: Path) -> None:
    slot = {"strategy": {"mode": "fallback"}, "targets": [HAIKU, GPT]}
    unknown = {"provider": "@team", "api_key": "sk-pasted-0123", "override_params": {"model": "x"}}
    key = {"virtual_key": "main-258f4d", "override_params": {"model": "gpt-4o"}}
    config = {
        "strategy": {"mode": "loadbalance"},
        "targets": [slot, unknown, key, {"provider": "openai"}],
        "input_guardrails": ["pg-1"],
    }
    result = run(tmp_path, "portkey", json.dumps(config), color=True)
    for note in (
        "strategy of smart: a strategy within a weighted or single target",
        "target smart (team/x): the base file has no provider team",
        "target of smart: if @main-258f4d is not the provider main-258f4d, write --provider",
        "target of smart: names no model: state override_params.model",
        "input_guardrails of smart: `guardrail` of a route",
    ):
        assert RED + note in result.stderr
    assert f"{RED}! smart:" in result.stderr
    assert "sk-pasted" not in result.output + (tmp_path / "new.yaml").read_text()


def test_presets_of_openrouter_try_their_models_at_the_providers_they_admit(
    tmp_path: Path,
) -> None:
    config = {
        "models": ["anthropic/claude-haiku-4.5", "openai/gpt-4o", "nobody/knows"],
        "provider": {
            "order": ["amazon-bedrock"],
            "only": ["amazon-bedrock", "openai"],
            "zdr": True,
        },
        "temperature": 0.7,
    }
    version = {"config": config, "system_prompt": "You are terse.", "version": 1}
    answer = {"data": {"slug": "terse", "name": "Terse", "designated_version": version}}
    routing, said = imported(tmp_path, "openrouter-presets", json.dumps([answer]))
    models = [next(iter(step)) for step in steps(routing, "terse")]
    served = [each.provider for model in models for each in routing.models[model].endpoints]
    assert list(dict.fromkeys(served)) == ["bedrock", "openai"]
    for note in (
        "preset terse: callers write terse instead of @preset/terse",
        "preset terse: its system prompt is left to the callers",
        "preset terse: its temperature is left to the callers",
        "preset terse: its provider.zdr becomes a `prompt_policy`, by hand",
        "preset terse (openrouter/nobody/knows): ",
    ):
        assert note in said
    assert "terse." not in said


def test_a_preset_prefers_the_order_of_its_providers(tmp_path: Path) -> None:
    for wanted, first in (
        ({"order": ["amazon-bedrock"]}, "bedrock"),
        ({"ignore": ["anthropic"]}, "bedrock"),
        ({"order": ["anthropic"], "allow_fallbacks": False}, "anthropic"),
    ):
        config = {"model": "anthropic/claude-haiku-4.5", "provider": wanted}
        preset = {"slug": "fast", "designated_version": {"config": config}}
        folder = tmp_path / first / next(iter(wanted))
        folder.mkdir(parents=True)
        routing, _ = imported(folder, "openrouter-presets", json.dumps({"data": preset}))
        providers = [each.provider for each in routing.models[routing.aliases["fast"].to].endpoints]
        assert providers[0] == first
        assert ("anthropic" in providers) == ("ignore" not in wanted)
        assert ("bedrock" in providers) == ("allow_fallbacks" not in wanted)


@pytest.mark.parametrize(
    ("kind", "text", "says"),
    [
        ("portkey", '{"targets": [{"api_key": "sk-pasted",}]}', "is not JSON"),
        ("portkey", "[]", "names no model"),
        ("openrouter-presets", '{"data": {"slug": "x"}}', "has no preset with a model"),
        ("claude-gateway", "listen: {}", "has no upstreams with models"),
        ("claude-gateway", "a: [sk-pasted", "cannot be read"),
        ("bedrock-gateway", "HOME=/root", "has no NAME=VALUE of bedrock-access-gateway"),
    ],
)
def test_a_file_of_something_else_is_refused(
    tmp_path: Path, kind: str, text: str, says: str
) -> None:
    result = run(tmp_path, kind, text)
    assert (result.exit_code, says in result.output) == (1, True), result.output
    assert "sk-pasted" not in result.output


def test_listed_models_of_the_claude_gateway_keep_the_order_of_upstreams(tmp_path: Path) -> None:
    models = """
auto_include_builtin_models: false
models:
  - id: claude-fast
    label: Fast
    upstream_model:
      direct: claude-haiku-4-5
      bedrock: us.anthropic.claude-haiku-4-5-20251001-v1:0
      other: claude-haiku
"""
    routing, said = imported(tmp_path, "claude-gateway", GATEWAY + models)
    haiku = routing.models[routing.aliases["claude-fast"].to]
    assert [each.provider for each in haiku.endpoints] == ["bedrock", "anthropic"]
    assert len(routing.models) == 1
    assert "models claude-fast: other has no counterpart" in said
    assert "managed: `availableModels` of a policy becomes `models` of a team" in said
    assert "oidc: members sign in by OpenID Connect" in said
    assert "= claude-fast: plain, tools, image, long" in said


def test_without_a_list_the_claude_gateway_serves_every_claude(tmp_path: Path) -> None:
    rows = "models:\n  - {id: claude-haiku-4-5, label: Haiku}\n"
    routing, said = imported(tmp_path, "claude-gateway", GATEWAY + rows)
    assert {slug.partition("/")[0] for slug in routing.models} == {"anthropic"}
    assert "anthropic/claude-opus-4.7" in routing.models
    assert "the Claude models of the base file replace the gateway's own list" in said
    assert "Served otherwise: 0." in said


def test_the_environment_of_bedrock_access_gateway_becomes_its_models(tmp_path: Path) -> None:
    text = """
# Lambda
AWS_REGION=us-east-1
export DEFAULT_MODEL="us.anthropic.claude-haiku-4-5-20251001-v1:0"
API_KEY_SECRET_ARN=arn:aws:secretsmanager:us-east-1:1:secret:x
ENABLE_APPLICATION_INFERENCE_PROFILES=true
"""
    routing, said = imported(tmp_path, "bedrock-gateway", text)
    assert {each.provider for model in routing.models.values() for each in model.endpoints} == {
        "bedrock"
    }
    assert routing.aliases["default"].to == "anthropic/claude-haiku-4.5"
    assert "DEFAULT_MODEL: names that begin with gpt- meant this model" in said
    assert "API_KEY_SECRET_ARN: `tollgate keys create` makes a key for each caller" in said
    assert "ENABLE_APPLICATION_INFERENCE_PROFILES: requests that name the ARN" in said
    assert "arn:aws" not in said
