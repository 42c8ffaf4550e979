"""A host whose prices nobody publishes is asked for at the router that passes them on: C65."""

from datetime import date

import pytest

from tests.unit.routing.test_routing_yaml import FILE
from tollgate.cli.catalog.evidence import PRICES, gather_evidence
from tollgate.cli.catalog.router_prices import ROUTER, find_routed_price
from tollgate.cli.catalog.verdicts import judge_file
from tollgate.cli.routing.published_prices import Unpublished
from tollgate.routing.file.load import load
from tollgate.routing.routing_file import Routing
from tollgate.routing.schema import EndpointSection, ProviderSection

TODAY = date(2026, 11, 22)
ROUTING = load(FILE)


def row(name: str) -> ProviderSection:
    return ROUTING.providers[name]


@pytest.mark.parametrize(
    ("provider", "upstream", "found"),
    [
        ("nebius", "Qwen/Qwen3-32B", "Qwen/Qwen3-32B"),
        ("novita", "minimax/minimax-m2", "MiniMaxAI/MiniMax-M2"),
        ("novita", "qwen/qwen3-32b-fp8", "Qwen/Qwen3-32B"),
        ("together", "moonshotai/Kimi-K2.5-fp4", "moonshotai/Kimi-K2.5"),
        ("huggingface", "deepseek-ai/DeepSeek-V3-0324:novita", "deepseek-ai/DeepSeek-V3-0324"),
    ],
)
def test_a_host_is_found_by_the_name_of_the_weights(
    provider: str, upstream: str, found: str
) -> None:
    published = find_routed_price(row(provider), upstream, TODAY, kind="chat")
    assert published.upstream == found


@pytest.mark.parametrize(
    ("provider", "upstream"),
    [
        # Another model, however alike its name is.
        ("novita", "zai-org/glm-5-turbo"),
        ("nebius", "Qwen/Qwen3-235B-A22B"),
        ("deepinfra", "Qwen/Qwen3-32B"),
        ("huggingface", "deepseek-ai/DeepSeek-V3-0324:nobody"),
        ("huggingface", "deepseek-ai/DeepSeek-V3-0324"),
    ],
)
def test_no_other_model_and_no_other_host_is_taken_for_it(provider: str, upstream: str) -> None:
    with pytest.raises(Unpublished):
        find_routed_price(row(provider), upstream, TODAY, kind="chat")


def only(provider: str, upstream: str) -> tuple[Routing, EndpointSection]:
    """The file with the one endpoint."""
    for slug, model in ROUTING.models.items():
        for endpoint in model.endpoints:
            if (endpoint.provider, endpoint.upstream) == (provider, upstream):
                kept = model.model_copy(update={"endpoints": (endpoint,)})
                return ROUTING.model_copy(update={"models": {slug: kept}}), endpoint
    raise AssertionError(upstream)


def test_the_router_is_not_asked_where_the_providers_own_price_is_published() -> None:
    routing, endpoint = only("novita", "zai-org/glm-5.2")
    assert set(gather_evidence(routing, TODAY, None, None).of(endpoint)) == {PRICES}


def test_the_router_is_named_as_who_agrees_and_which_data_have_it() -> None:
    routing, endpoint = only("nebius", "Qwen/Qwen3-32B")
    evidence = gather_evidence(routing, TODAY, None, None)
    assert set(evidence.of(endpoint)) == {ROUTER}
    version = evidence.publishers[PRICES].version
    [verdict] = judge_file(routing, evidence)
    assert verdict.agreeing == (f"Hugging Face router in genai-prices {version}",)
    assert evidence.may_state(endpoint) == (ROUTER,)
