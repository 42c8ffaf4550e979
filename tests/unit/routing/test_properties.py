"""What holds of every catalog: weights are shares, changes move their own, compiling is stable.

Keeps C53.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from datetime import date
from decimal import Decimal
from math import sqrt
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from bench.catalog_300 import make_routing as large_routing
from tests.examples import costly
from tests.nightly import first
from tests.unit.routing.catalogs import (
    NOW_S,
    catalog,
    endpoint,
    model,
    principal,
    provider,
    request,
)
from tollgate.routing.file.compile import compile_catalog
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest

ROOT = Path(__file__).parents[3]
REQUESTS = 1_000

weights = st.dictionaries(
    st.sampled_from([f"e{number}" for number in range(8)]),
    st.integers(1, 100),
    min_size=2,
    max_size=6,
)


def drawn_endpoints(shares: Mapping[str, int]) -> Catalog:
    """A model whose endpoints are drawn."""
    offers = [endpoint("near", name) | {"weight": weight} for name, weight in shares.items()]
    return catalog(models={"acme/large": model(*offers)}, aliases={}, routes={})


def drawn_models(shares: Mapping[str, int]) -> Catalog:
    """A route whose models are drawn, each with the one endpoint of its name."""
    step = {f"acme/{name}": weight for name, weight in shares.items()}
    return catalog(
        models={f"acme/{name}": model(endpoint("near", name)) for name in shares},
        aliases={},
        routes={"acme/large": {"description": "Drawn", "try": (step,)}},
    )


Drawn = Callable[[Mapping[str, int]], Catalog]
BOTH = pytest.mark.parametrize("drawn", first(1, [drawn_endpoints, drawn_models]))


def plans(of: Catalog) -> list[tuple[str, ...]]:
    """Where each of many requests would be tried, best first."""
    planner, asked = Planner(of), request("acme/large")
    requests = (
        PlanningRequest.of(asked, principal=principal(), request_id=f"r-{number}")
        for number in range(REQUESTS)
    )
    return [
        tuple(attempt.target.upstream_model for attempt in planner.plan(each, now_s=NOW_S).attempts)
        for each in requests
    ]


@BOTH
@costly(times=5)
@given(shares=weights)
def test_c53_the_shares_of_requests_converge_to_the_weights(
    drawn: Drawn, shares: dict[str, int]
) -> None:
    firsts = Counter(plan[0] for plan in plans(drawn(shares)))
    whole = sum(shares.values())
    for name, weight in shares.items():
        share = weight / whole
        # Five standard deviations: one honest draw in two million lies outside.
        assert abs(firsts[name] / REQUESTS - share) < 5 * sqrt(share * (1 - share) / REQUESTS)


@BOTH
@costly(times=5)
@given(shares=weights, data=st.data())
def test_c53_an_endpoint_or_model_that_comes_or_goes_moves_only_its_own_share(
    drawn: Drawn, shares: dict[str, int], data: st.DataObject
) -> None:
    name = data.draw(st.sampled_from(sorted(shares)))
    without = {each: weight for each, weight in shares.items() if each != name}
    for with_it, left in zip(plans(drawn(shares)), plans(drawn(without)), strict=True):
        # Nobody else's place changes, so whoever it served goes where they would go without it.
        assert tuple(each for each in with_it if each != name) == left


# Less looks like dollars per token, which is an error.
rates = st.decimals(min_value=1, max_value=1_000, places=4, allow_nan=False)
days = st.dates(min_value=date(2001, 1, 1)).map(str)
prices = st.fixed_dictionaries(
    {"input": rates, "output": rates, "source": st.just("made up"), "checked": days},
    optional={"request": rates, "image": rates},
)
overrides = st.lists(
    st.fixed_dictionaries(
        {
            "when": st.fixed_dictionaries({"prompt_tokens_over": st.integers(1, 10**6)}),
            "price": st.fixed_dictionaries({"output": rates}),
        }
    ),
    max_size=2,
)
endpoints = st.fixed_dictionaries(
    {"provider": st.sampled_from(["near", "far"]), "price": prices, "overrides": overrides},
    optional={
        "timeouts": st.fixed_dictionaries({"idle_s": st.integers(1, 900)}),
        "dialect": st.fixed_dictionaries({"refuses": st.lists(st.sampled_from(["seed", "stop"]))}),
    },
)
models = st.fixed_dictionaries(
    {
        "name": st.text("ab é#:'\"", min_size=1, max_size=8),
        "context": st.integers(1_000, 10**7),
        "max_output": st.integers(1, 1_000),
        "endpoints": st.lists(endpoints, min_size=1, max_size=3),
    },
    optional={"supports": st.lists(st.sampled_from(["tools", "reasoning"]), unique=True)},
)


@st.composite
def files(draw: st.DrawFn) -> dict[str, object]:
    """A file without mistakes."""
    made = draw(st.lists(models, min_size=1, max_size=4))
    named = {f"acme/m{number}": each for number, each in enumerate(made)}
    for each in made:
        for number, offer in enumerate(each["endpoints"]):
            offer["upstream"] = f"u{number}"
    chain = draw(st.lists(st.sampled_from(sorted(named)), min_size=1, unique=True))
    return {
        "version": 1,
        "providers": {"near": provider(), "far": provider(key={"env": "FAR_API_KEY"})},
        "models": named,
        "routes": {"smart": {"description": "Drawn up", "try": chain}},
    }


@given(content=files())
def test_what_is_compiled_of_any_file_compiles_to_itself(
    content: dict[str, object], tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.mktemp("file") / "routing.yaml"
    file.write_bytes(to_json(content, serialize_unknown=True))
    _compiles_to_itself(file)


@pytest.mark.parametrize("name", ["routing.yaml", "tests/unit/routing/whole.yaml"])
def test_what_is_compiled_of_our_own_files_compiles_to_itself(name: str, tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    file.write_bytes(compile_catalog(ROOT / name).content)
    _compiles_to_itself(file)


def test_what_is_compiled_of_a_large_file_compiles_to_itself(tmp_path: Path) -> None:
    file = tmp_path / "routing.yaml"
    file.write_text(large_routing(30), encoding="utf-8")
    _compiles_to_itself(file)


def _compiles_to_itself(file: Path) -> None:
    """Compiled JSON is a routing file like any other, and says no more and no less."""
    compiled = compile_catalog(file)
    again = file.with_name("compiled.yaml")
    again.write_bytes(compiled.content)
    assert compile_catalog(again).content == compiled.content
    catalog = Catalog.from_json(compiled.content)
    assert catalog.sha == compiled.sha
    assert catalog.models == compiled.routing.models
    assert all(
        isinstance(offer.price.input, Decimal)
        for each in catalog.models.values()
        for offer in each.endpoints
    )
