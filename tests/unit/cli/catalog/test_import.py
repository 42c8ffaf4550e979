"""`tollgate import litellm`: what a config becomes, and what is listed as without a counterpart."""

from pathlib import Path
from traceback import format_exception
from typing import Any

import pytest

from tests.unit.cli.catalog.imports import BEDROCK, CLAUDE, OPENAI, entry, imported, run, shipped
from tollgate.cli.catalog.litellm_config import NotALitellmConfig, read_litellm_config


def test_a_known_deployment_becomes_its_model_with_that_endpoint_alone(tmp_path: Path) -> None:
    routing, said = imported(tmp_path, entry("claude", CLAUDE), entry("gpt-4o", OPENAI))
    ours = shipped().models
    haiku = routing.models["anthropic/claude-haiku-4.5"]
    assert [each.provider for each in haiku.endpoints] == ["anthropic"]
    [offer] = [
        it for it in ours["anthropic/claude-haiku-4.5"].endpoints if it.provider == "anthropic"
    ]
    assert haiku.endpoints == (offer,)
    assert haiku.context == ours["anthropic/claude-haiku-4.5"].context
    assert routing.aliases["gpt-4o"].to == "openai/gpt-4o"
    assert sorted(routing.providers) == ["anthropic", "openai"]
    assert "2 models, 2 aliases, 0 routes; 0 notes\n" in said


@pytest.mark.parametrize(
    ("name", "mode", "kind"),
    [
        ("text-embedding-3-small", None, "embedding"),
        ("whisper-1", "audio_transcription", "transcription"),
        ("tts-1", "audio_speech", "speech"),
        ("gpt-image-2", "image_generation", "image"),
    ],
)
def test_a_known_model_that_does_not_chat_becomes_that_model(
    tmp_path: Path, name: str, mode: str | None, kind: str
) -> None:
    """LiteLLM's configs state a mode, or leave it to its list of models."""
    params = OPENAI | {"model": f"openai/{name}"}
    facts = {} if mode is None else {"mode": mode}
    routing, said = imported(tmp_path, entry("work", params, **facts))
    ours = shipped().models[f"openai/{name}"]
    assert (routing.models[f"openai/{name}"], ours.kind) == (ours, kind)
    assert routing.aliases["work"].to == f"openai/{name}"
    assert "1 models, 1 aliases, 0 routes; 0 notes\n" in said


def test_models_of_several_kinds_are_kept_apart(tmp_path: Path) -> None:
    vectors = OPENAI | {"model": "openai/text-embedding-3-small"}
    routing, said = imported(
        tmp_path,
        entry("both", CLAUDE),
        entry("both", vectors),
        entry("vec", vectors),
        litellm_settings={"fallbacks": [{"vec": ["both"]}]},
    )
    assert [each.kind for each in routing.models.values()] == ["chat", "embedding"]
    tried = routing.routes["vec"].model_dump(mode="json", by_alias=True)["try"]
    assert str(tried).count("openai/text-embedding-3-small") == len(tried) == 1
    assert "has the kind embedding, unlike the first deployment with this name" in said
    assert "anthropic/claude-haiku-4.5 has another kind of work" in said


def test_a_file_larger_than_any_config_is_not_read(tmp_path: Path) -> None:
    result = run(tmp_path, "model_list: []\n" + "#" * 4_000_000)
    assert (result.exit_code, "is larger than 4000000 bytes" in result.output) == (1, True)


def test_deployments_of_one_name_are_drawn_by_their_weights(tmp_path: Path) -> None:
    routing, _ = imported(
        tmp_path, entry("claude", CLAUDE | {"rpm": 300}), entry("claude", BEDROCK | {"rpm": 100})
    )
    [haiku] = routing.models.values()
    assert [(it.provider, it.weight) for it in haiku.endpoints] == [
        ("anthropic", 75),
        ("bedrock", 25),
    ]


def test_the_same_model_at_other_endpoints_is_another_model(tmp_path: Path) -> None:
    routing, _ = imported(tmp_path, entry("direct", CLAUDE), entry("aws", BEDROCK))
    assert routing.aliases["direct"].to == "anthropic/claude-haiku-4.5"
    aws = routing.models[routing.aliases["aws"].to]
    assert [it.provider for it in aws.endpoints] == ["bedrock"]


def test_another_key_is_another_row_and_a_written_key_is_not_copied(tmp_path: Path) -> None:
    other = OPENAI | {"api_key": "os.environ/TEAM_B_API_KEY"}
    pasted = OPENAI | {"api_key": "sk-pasted-0123456789abcdef"}
    routing, said = imported(
        tmp_path, entry("a", OPENAI), entry("b", other), entry("c", pasted | {"model": "gpt-4.1"})
    )
    row = routing.providers["openai-team-b-api-key"]
    assert row.key is not None
    assert row.key.env == "TEAM_B_API_KEY"
    assert row.dialect == routing.providers["openai"].dialect
    assert "the key in the config was not copied: set it in OPENAI_API_KEY" in said
    assert "sk-pasted" not in said + (tmp_path / "new.yaml").read_text()


def test_fallbacks_become_routes_with_their_errors(tmp_path: Path) -> None:
    entries = (
        entry("gpt", OPENAI),
        entry("claude", CLAUDE),
        entry("mini", OPENAI | {"model": "gpt-4.1-mini"}),
    )
    routing, said = imported(
        tmp_path,
        *entries,
        litellm_settings={
            "fallbacks": [{"gpt": ["claude", "nobody"]}],
            "context_window_fallbacks": [{"mini": ["claude"]}],
        },
        router_settings={"model_group_alias": {"best": "gpt", "lost": "nobody"}},
    )
    gpt, mini = routing.routes["gpt"], routing.routes["mini"]
    assert [dict(step) for step in gpt.all_rules[0].steps] == [
        {"openai/gpt-4o": 100},
        {"anthropic/claude-haiku-4.5": 100},
    ]
    assert "context_length_exceeded" not in gpt.next_on
    assert mini.next_on == ("context_length_exceeded",)
    assert routing.aliases["best"].to == "gpt"
    assert "fallbacks of gpt: nobody was not imported" in said
    assert "model_group_alias lost: nobody was not imported" in said


def test_every_name_gets_the_default_fallbacks(tmp_path: Path) -> None:
    routing, _ = imported(
        tmp_path,
        entry("openai/gpt-4o", OPENAI),
        entry("claude", CLAUDE),
        litellm_settings={"default_fallbacks": ["claude"]},
    )
    steps = [dict(step) for step in routing.routes["openai/gpt-4o"].all_rules[0].steps]
    assert steps == [{"litellm/openai-gpt-4o": 100}, {"anthropic/claude-haiku-4.5": 100}]
    assert routing.aliases["claude"].to == "anthropic/claude-haiku-4.5"


def test_budgets_of_keys_become_tiers_and_retries_defaults(tmp_path: Path) -> None:
    params = {
        "max_budget": 12.5,
        "budget_duration": "30d",
        "rpm_limit": 60,
        "models": ["gpt", "nobody"],
    }
    routing, said = imported(
        tmp_path,
        entry("gpt", OPENAI),
        litellm_settings={
            "default_key_generate_params": params,
            "default_internal_user_params": {"max_budget": 1, "budget_duration": "12d"},
            "num_retries": 5,
            "request_timeout": 6000,
            "drop_params": True,
        },
        router_settings={
            "allowed_fails": 4,
            "cooldown_time": 20,
            "retry_policy": {"RateLimitErrorRetries": 1, "BadRequestErrorRetries": 1},
        },
    )
    tier = routing.key_tiers["default"]
    assert tier.budget is not None
    assert (float(tier.budget.usd), tier.budget.per, tier.rpm, tier.models) == (
        12.5,
        "month",
        60,
        ("gpt",),
    )
    assert "a budget of 12d became a monthly budget" in said
    assert routing.defaults.retry.retries_max == 2
    assert routing.defaults.retry.retries_max_by_error == {"provider_rate_limit": 1}
    assert "retry_policy.BadRequestErrorRetries: such errors are not retried" in said
    assert routing.defaults.timeouts.non_streamed_total_s == 900
    assert (routing.defaults.cooldown.after_failures, routing.defaults.cooldown.rest_s) == (4, 20)
    assert "drop_params" not in said


def test_a_server_of_ones_own_becomes_a_row_at_its_address(tmp_path: Path) -> None:
    azure = {
        "model": "azure/gpt-4o-mini",
        "api_base": "https://acme-eu.openai.azure.com/",
        "api_key": "os.environ/AZURE_API_KEY",
    }
    ollama = {"model": "ollama/qwen3:4b", "api_base": "http://gpu.internal:11434"}
    priced = {
        "model": "openai/house-1",
        "api_base": "https://llm.acme.example/v1",
        "input_cost_per_token": 1.5e-6,
        "output_cost_per_token": 2e-6,
    }
    routing, said = imported(
        tmp_path,
        entry("azure", azure),
        entry("local", ollama, max_input_tokens=32768, max_output_tokens=2048),
        entry("house", priced, supports_vision=True, supports_function_calling=True),
    )
    assert (
        routing.providers["azure-acme-eu"].base_url == "https://acme-eu.openai.azure.com/openai/v1"
    )
    assert routing.providers["azure-acme-eu"].auth == "api-key"
    local = routing.models["litellm/local"]
    assert (local.context, local.max_output, local.endpoints[0].price.input) == (32768, 2048, 0)
    assert routing.providers["ollama-gpu"].base_url == "http://gpu.internal:11434/v1"
    assert routing.providers["ollama-gpu"].private
    house = routing.models["litellm/house"]
    assert float(house.endpoints[0].price.input) == 1.5
    assert {"tools", "structured_output"} < {*house.supports}
    note = "model_list house (openai/house-1): its max_output is unknown: answers are not limited"
    assert note in said


@pytest.mark.parametrize(
    ("params", "facts", "reason"),
    [
        (
            {"model": "openai/*"},
            {},
            "only provider/* under a name with one * is imported: name the models",
        ),
        ({"model": "openai/nobody-knows"}, {}, "no price is published"),
        (
            {"model": "openai/x", "api_base": "os.environ/BASE"},
            {},
            "its address is in the environment: --address BASE=https://…",
        ),
        (
            {"model": "openai/x", "api_base": "http://a b"},
            {},
            "cannot be the address of a provider",
        ),
        ({"model": "ollama/x"}, {}, "api_base is missing"),
        ({"model": "petals/x"}, {}, "the base file has no provider petals"),
        ({"model": "nobody"}, {}, "write it as provider/model"),
        ({"model": "openai/dall-e-3"}, {"mode": "image_generation"}, "only chat models"),
    ],
)
def test_what_has_no_counterpart_is_left_out_with_the_reason(
    tmp_path: Path, params: dict[str, Any], facts: dict[str, Any], reason: str
) -> None:
    routing, said = imported(tmp_path, entry("x", params, **facts), entry("gpt", OPENAI))
    assert "model_list x" in said
    assert reason in said
    assert [*routing.aliases] == ["gpt"]


def test_every_other_setting_is_listed_by_its_place(tmp_path: Path) -> None:
    _, said = imported(
        tmp_path,
        entry("gpt", OPENAI),
        entry("gpt", OPENAI),
        entry("two words", OPENAI),
        general_settings={"master_key": "sk-1", "novelty": True},
        litellm_settings={"callbacks": ["otel"]},
        guardrails=[{"guardrail_name": "x"}],
        mcp_servers={"a": {}},
    )
    assert "general_settings.master_key: use `tollgate first-key`" in said
    assert "general_settings.novelty: it has no counterpart" in said
    assert "litellm_settings.callbacks: spans go to a collector" in said
    assert "guardrails: write them as `guardrails` in routing.yaml" in said
    assert "mcp_servers: the gateway does not call MCP servers" in said
    assert "appears twice with the same endpoint; their shares were added" in said
    assert "model_list two words: a name may have only letters" in said
    assert "sk-1" not in said


@pytest.mark.parametrize("text", ["[", "a: *b", "[]", "model_list: 3", "model_list: [{}]", "\x00"])
def test_a_file_that_is_no_config_is_refused(tmp_path: Path, text: str) -> None:
    result = run(tmp_path, text)
    assert (result.exit_code, (tmp_path / "new.yaml").exists()) == (1, False)
    assert "Error: " in result.output
    assert "Traceback" not in result.output


def test_a_parameter_without_a_counterpart_is_listed(tmp_path: Path) -> None:
    role = BEDROCK | {"aws_role_name": "arn:secret"}
    _, said = imported(tmp_path, entry("claude", role))
    assert "its aws_role_name has no counterpart" in said
    assert "arn:secret" not in said


def test_another_region_is_another_provider(tmp_path: Path) -> None:
    regions = ("eu-central-1", shipped().providers["bedrock"].region, "nowhere")
    deployments = [BEDROCK | {"aws_region_name": region} for region in regions]
    routing, said = imported(
        tmp_path, *(entry(f"r{place}", each) for place, each in enumerate(deployments))
    )
    [eu] = routing.models[routing.aliases["r0"].to].endpoints
    [home] = routing.models[routing.aliases["r1"].to].endpoints
    assert (eu.provider, home.provider) == ("bedrock-eu-central-1", "bedrock")
    assert routing.providers[eu.provider].region == "eu-central-1"
    assert "aws_region_name is not a region: write the region into the config" in said


@pytest.mark.parametrize(
    "text",
    [
        "model_list: [{litellm_params: {api_key: hush-hush, : : }}]",
        """
model_list:
- model_name: own
  litellm_params: {model: openai/own, api_base: "https://me:hush-hush@llm.example.com/v1"}
""",
    ],
)
def test_no_message_quotes_a_key(tmp_path: Path, text: str) -> None:
    said = run(tmp_path, text).output
    assert "hush" not in said
    assert "cannot be" in said


def test_no_traceback_quotes_a_key(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text("model_list: [{litellm_params: {api_key: hush-hush, : : }}]")
    with pytest.raises(NotALitellmConfig) as refused:
        read_litellm_config(path)
    assert "hush" not in "".join(format_exception(refused.value))


def test_values_of_another_kind_are_listed_or_left_out(tmp_path: Path) -> None:
    own = OPENAI | {"api_base": "https://llm.example.com"}
    rates = {"output_cost_per_token": 0.1}
    routing, said = imported(
        tmp_path,
        entry("claude", CLAUDE | {"weight": float("inf")}),
        entry("claude", BEDROCK | {"weight": 1}),
        entry("words", own | rates | {"input_cost_per_token": "free"}),
        entry("negative", own | rates | {"input_cost_per_token": -1}),
        entry("bracket", own | {"api_base": "https://[llm.example.com"}),
        litellm_settings={
            "fallbacks": [{"claude": [["words"]]}],
            "default_key_generate_params": {"models": [["claude"]], "max_budget": float("nan")},
        },
        router_settings={
            "model_group_alias": {"quick": {"model": ["claude"]}},
            "num_retries": -1,
            "timeout": float("nan"),
        },
    )
    assert list(routing.models) == ["anthropic/claude-haiku-4.5"]
    assert said.count("the price is not a number of dollars") == 2
    assert "api_base is not an address" in said
    assert "model_group_alias quick: no model is named" in said


def test_a_file_that_is_there_is_not_overwritten(tmp_path: Path) -> None:
    (tmp_path / "new.yaml").write_text("mine")
    assert "exists already" in run(tmp_path, {"model_list": [entry("gpt", OPENAI)]}).output
    assert (tmp_path / "new.yaml").read_text() == "mine"


def test_c21_an_imported_alias_takes_the_place_of_a_name_that_a_model_states(
    tmp_path: Path,
) -> None:
    params = OPENAI | {"model": "openai/gpt-4o"}
    routing, _ = imported(tmp_path, entry("gpt-4o-2024-08-06", params), entry("mine", params))
    assert routing.aliases["gpt-4o-2024-08-06"].to == "openai/gpt-4o"
    assert routing.models["openai/gpt-4o"].names == ()
