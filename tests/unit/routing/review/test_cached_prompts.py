"""A plan states how many prompt tokens providers would have cached under each revision.

Keeps C53, C65.
"""

from collections.abc import Iterator

import pytest
from msgspec.structs import replace

from tests.traffic import RECORDED_S, line, planning_request, record
from tests.unit.routing.catalogs import RECENTLY, catalog, endpoint, model
from tollgate.core.records.generation import GenerationRecord
from tollgate.routing.planning.catalog import Catalog
from tollgate.routing.review.cached_prompts import CachedPrompts, ReplayedTurn, estimate_cached
from tollgate.routing.review.replay import replay_traffic
from tollgate.routing.review.traffic import read_traffic


def drawn(**section: object) -> Catalog:
    """A model whose requests are drawn evenly from two endpoints."""
    ends = [endpoint("near", "l") | {"weight": 50}, endpoint("far", "L") | {"weight": 50}]
    return catalog(models={"acme/large": model(*ends, **section)}, routes={}, aliases={})


PLAIN = drawn()
CACHES = drawn(cacheable={"tokens_min": 1024, "source": "made up", "checked": RECENTLY})


def conversations(tokens: int, *, pause_s: int = 60) -> Iterator[GenerationRecord]:
    """Twenty conversations with five turns each."""
    sizes = {"input_tokens_min": 1, "input_tokens": tokens, "input_tokens_max": 4 * tokens}
    for number in range(100):
        asked = planning_request(
            "acme/large", number, conversation_hash=f"talk-{number % 20}", **sizes
        )
        made = record(PLAIN, asked, number, tokens=(tokens, 50))
        yield replace(made, created_s=RECORDED_S + number // 20 * pause_s + number % 20)


def cached(base: Catalog, head: Catalog, *records: GenerationRecord) -> CachedPrompts:
    # Exports have the newest record first.
    return replay_traffic(read_traffic(map(line, reversed(records))), base, head).cached


def test_c53_a_model_that_states_its_minimum_keeps_conversations_where_they_are_cached() -> None:
    figures = cached(PLAIN, CACHES, *conversations(2_000))
    assert (figures.prompt_tokens, figures.after) == (160_000, 160_000)
    # Half of the turns were drawn for the endpoint of the turn before.
    assert 60_000 <= figures.before <= 100_000
    assert figures.gain == figures.after - figures.before
    assert cached(CACHES, PLAIN, *conversations(2_000)).gain == -figures.gain
    assert cached(CACHES, CACHES, *conversations(2_000)).gain == 0


def test_c53_what_providers_no_longer_or_never_cache_does_not_count() -> None:
    assert cached(PLAIN, CACHES, *conversations(2_000, pause_s=400)).after == 0
    assert cached(PLAIN, CACHES, *conversations(1_000)).after == 0


@pytest.mark.parametrize(("tokens", "expected"), [(900, 700), (500, 0)])
def test_c53_a_turn_has_as_much_cached_as_it_shares_with_the_one_before(
    tokens: int, expected: int
) -> None:
    def turn(created_s: int, prompt_tokens: int, endpoint: str = "a") -> ReplayedTurn:
        return ReplayedTurn(
            created_s=created_s,
            conversation="c",
            prompt_tokens=prompt_tokens,
            endpoints=("a", endpoint),
            tokens_min=(600, 600),
        )

    figures = estimate_cached([turn(20, tokens, "b"), turn(10, 700)])
    assert figures == CachedPrompts(prompt_tokens=tokens, before=expected, after=0)
