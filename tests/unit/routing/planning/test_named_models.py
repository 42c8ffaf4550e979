"""Names of models that the file does not state, and the rights and providers that go with them.

Keeps C21.
"""

import pytest

from tests.cells import cells
from tests.unit.routing.catalogs import (
    catalog,
    endpoint,
    model,
    plan_of,
    principal,
    provider,
    request,
)
from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.routing.planning.catalog import Catalog

ROWS = {
    "bedrock": provider(codec="bedrock", transport="bedrock_runtime", region="us-east-1"),
    "anthropic": provider(base_url="https://api.anthropic.com/v1"),
    "groq-eu": provider(base_url="https://api.groq.com/openai/v1"),
    "far": provider(),
}
MODELS = {
    "anthropic/claude-opus-4.7": model(
        endpoint("anthropic", "claude-opus-4-7"),
        endpoint("bedrock", "us.anthropic.claude-opus-4-7-20260416-v1:0"),
        replaces=("claude-3-opus-20240229",),
    ),
    "openai/gpt-5": model(endpoint("far", "gpt-5"), names=("gpt-5-2025-08-07",)),
    "openai/gpt-oss-120b": model(
        endpoint("far", "openai/gpt-oss-120b"), endpoint("groq-eu", "openai/gpt-oss-120b")
    ),
    "acme/tuned": model(endpoint("far", "ft:gpt-5:acme::1")),
    "acme/tuned-2": model(endpoint("far", "ft:gpt-5:acme::0")),
    "acme/gpt-mini": model(endpoint("far", "m")),
    "openai/gpt-mini": model(endpoint("far", "gpt-mini")),
    "deepseek/deepseek-v3": model(endpoint("far", "accounts/fireworks/models/deepseek-v3p0")),
}


def named() -> Catalog:
    return catalog(
        providers=ROWS, models=MODELS, aliases={"best": {"to": "openai/gpt-5"}}, routes={}
    )


@cells(
    ("name", "slug"),
    [
        ("gpt-5", "openai/gpt-5"),
        ("GPT-5", "openai/gpt-5"),
        ("gpt-5-latest", "openai/gpt-5"),
        ("gpt-5-2025-08-07", "openai/gpt-5"),
        ("azure/eu/gpt-5-2025-08-07", "openai/gpt-5"),
        ("openrouter/openai/gpt-5", "openai/gpt-5"),
        ("tensorzero::model_name::gpt-5", "openai/gpt-5"),
        ("claude-opus-4-7", "anthropic/claude-opus-4.7"),
        ("anthropic/claude-opus-4-7", "anthropic/claude-opus-4.7"),
        ("claude-opus-4-7-20260416", "anthropic/claude-opus-4.7"),
        ("claude-opus-4-7@20260416", "anthropic/claude-opus-4.7"),
        ("vertex_ai/claude-opus-4-7@default", "anthropic/claude-opus-4.7"),
        ("anthropic.claude-opus-4-7-20260416-v1:0", "anthropic/claude-opus-4.7"),
        ("bedrock/eu.anthropic.claude-opus-4-7-20260416-v1:0", "anthropic/claude-opus-4.7"),
        ("bedrock/converse/apac.anthropic.claude-opus-4-7", "anthropic/claude-opus-4.7"),
        ("bedrock/us-gov-west-1/anthropic.claude-opus-4-7", "anthropic/claude-opus-4.7"),
        ("together_ai/deepseek-ai/DeepSeek-V3", "deepseek/deepseek-v3"),
        ("fireworks_ai/accounts/fireworks/models/deepseek-v3p0", "deepseek/deepseek-v3"),
        ("ft:gpt-5:acme::1", "acme/tuned"),
        ("ft:gpt-5:acme::0", "acme/tuned-2"),
    ],
)
def test_c21_a_model_answers_under_the_names_of_vendors_clouds_and_gateways(
    name: str, slug: str
) -> None:
    plan = plan_of(named(), request(name), principal=principal())
    assert {attempt.target.model for attempt in plan.attempts} == {slug}
    assert plan.trace.requested_model == name


def refusal_of(name: str) -> RequestError:
    with pytest.raises(RequestError) as refused:
        plan_of(named(), request(name), principal=principal())
    assert refused.value.code is ErrorCode.MODEL_NOT_FOUND
    return refused.value


@pytest.mark.parametrize("name", ["gpt-mini", "azure/gpt-mini"])
def test_c21_a_name_that_two_authors_could_mean_is_refused_with_both(name: str) -> None:
    message = f"{name} could mean acme/gpt-mini or openai/gpt-mini; request one of these."
    assert refusal_of(name).message == message


def test_c21_an_author_before_an_ambiguous_name_decides() -> None:
    assert named().target("openrouter/acme/gpt-mini") == "acme/gpt-mini"


@pytest.mark.parametrize(
    "name", ["claude-3-opus-20240229", "bedrock/us.anthropic.claude-3-opus-20240229-v1:0"]
)
def test_c21_a_retired_model_is_refused_with_its_successor(name: str) -> None:
    message = f"{name} is no longer served; use anthropic/claude-opus-4.7 instead."
    assert refusal_of(name).message == message


@pytest.mark.parametrize(
    "name",
    [
        "openai/claude-opus-4-7",
        "somebody/gpt-5",
        "gpt-5-2024-01-01",
        "azure/" * 5 + "gpt-5",
        "ft:gpt-5:other::1",
        "/gpt-5",
        "azure/",
        "@20260416",
        "us.",
        "azure/" + "g" * 1_000_000,
    ],
)
def test_c21_a_name_of_another_author_another_snapshot_or_another_tuning_is_unknown(
    name: str,
) -> None:
    refused = refusal_of(name)
    assert refused.message.startswith("There is no model, alias or route named")


@pytest.mark.parametrize(
    ("globs", "is_allowed"),
    [
        (("openai/*",), True),
        (("openai/gpt-5",), True),
        (("gpt-5",), True),
        (("gpt-*",), False),
        (("g*", "best"), False),
        (("gpt-5-latest",), False),
    ],
)
def test_c21_no_wildcard_of_a_key_matches_a_derived_name(
    globs: tuple[str, ...], is_allowed: bool
) -> None:
    key = principal(models=globs)
    if is_allowed:
        assert plan_of(named(), request("gpt-5"), principal=key).attempts
        return
    with pytest.raises(AccessError):
        plan_of(named(), request("gpt-5"), principal=key)


def providers_of(name: str, **preferences: object) -> list[str]:
    plan = plan_of(named(), request(name, **preferences), principal=principal())
    return [attempt.target.provider for attempt in plan.attempts]


def test_c21_a_prefix_asks_for_a_provider_first_if_it_serves_the_model() -> None:
    assert providers_of("claude-opus-4-7") == ["anthropic", "bedrock"]
    assert providers_of("bedrock/anthropic.claude-opus-4-7") == ["bedrock", "anthropic"]
    assert providers_of("groq/openai/gpt-oss-120b") == ["groq-eu", "far"]
    assert providers_of("groq-eu/openai/gpt-oss-120b") == ["groq-eu", "far"]
    assert providers_of("bedrock/gpt-oss-120b") == ["far", "groq-eu"]


def test_c21_preferences_of_a_request_outrank_the_prefix_and_an_author_is_not_a_provider() -> None:
    name = "bedrock/anthropic.claude-opus-4-7"
    assert providers_of(name, order=("anthropic",)) == ["anthropic", "bedrock"]
    assert providers_of("openai/GPT-OSS-120b") == ["far", "groq-eu"]
