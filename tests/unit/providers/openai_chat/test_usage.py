"""Usage of OpenAI-like servers: which counts include which."""

from typing import Any

import pytest

from tollgate.core.usage import Usage
from tollgate.providers.shared.openai_usage import openai_usage_of


def report(**fields: Any) -> Usage:
    return openai_usage_of(fields)


def test_reasoning_beside_the_completion_is_added_where_the_total_proves_it() -> None:
    beside = report(
        prompt_tokens=401,
        completion_tokens=44,
        total_tokens=702,
        completion_tokens_details={"reasoning_tokens": 257},
    )
    assert (beside.output_tokens, beside.reasoning_tokens) == (301, 257)
    assert beside.total_tokens == 702


@pytest.mark.parametrize(
    ("said", "searches"),
    [
        ({"num_search_queries": 4}, 4),
        ({"num_sources_used": 5}, 5),
        ({"server_tool_use": {"web_search_requests": 2}}, 2),
        ({"num_sources_used": 0}, 0),
        ({"server_tool_use": {}}, None),
        ({}, None),
    ],
)
def test_c65_what_a_server_searched_for_by_itself_is_counted(
    said: dict[str, object], searches: int | None
) -> None:
    assert report(prompt_tokens=1, completion_tokens=1, **said).web_searches == searches


def test_output_that_only_the_total_knows_of_is_output() -> None:
    hidden = report(prompt_tokens=35, completion_tokens=12, total_tokens=109)
    assert (hidden.output_tokens, hidden.reasoning_tokens) == (74, 62)


def test_a_total_that_nothing_explains_changes_nothing() -> None:
    odd = report(
        prompt_tokens=35,
        completion_tokens=12,
        total_tokens=109,
        completion_tokens_details={"reasoning_tokens": 5},
    )
    assert odd.output_tokens == 12
    assert report(prompt_tokens=35, completion_tokens=12, total_tokens=1).output_tokens == 12


def test_reasoning_inside_the_completion_is_not_counted_twice() -> None:
    inside = report(
        prompt_tokens=190,
        completion_tokens=379,
        total_tokens=569,
        completion_tokens_details={"reasoning_tokens": 320},
    )
    assert (inside.output_tokens, inside.reasoning_tokens) == (379, 320)


def test_reasoning_above_the_completion_is_kept_as_told() -> None:
    told = report(
        prompt_tokens=43,
        completion_tokens=10,
        total_tokens=53,
        completion_tokens_details={"reasoning_tokens": 11},
    )
    assert (told.output_tokens, told.reasoning_tokens) == (10, 11)


def test_more_cached_tokens_than_prompt_are_bounded_by_the_prompt() -> None:
    bounded = report(prompt_tokens=10, prompt_tokens_details={"cached_tokens": 12})
    assert bounded.cache_read_input_tokens == 10
    assert bounded.uncached_input_tokens == 0


@pytest.mark.parametrize("field", ["prompt_cache_hit_tokens", "num_cached_tokens", "cached_tokens"])
def test_cache_hits_have_other_names_elsewhere(field: str) -> None:
    assert report(prompt_tokens=254, **{field: 48}).cache_read_input_tokens == 48


def test_cache_writes_are_part_of_the_prompt() -> None:
    written = report(
        prompt_tokens=100, prompt_tokens_details={"cached_tokens": 10, "cache_write_tokens": 60}
    )
    assert written.cache_write_5m_input_tokens == 60
    assert written.uncached_input_tokens == 30


def test_null_is_not_zero() -> None:
    assert report(prompt_tokens=None, completion_tokens=None) == Usage()
    assert report(prompt_tokens=0, completion_tokens=0) == Usage(
        uncached_input_tokens=0, output_tokens=0
    )


def test_c26_c81_tokens_of_pictures_are_parts_of_the_prompt_and_of_the_completion() -> None:
    drawn = report(
        prompt_tokens=300,
        completion_tokens=1300,
        prompt_tokens_details={"image_tokens": 258},
        completion_tokens_details={"image_tokens": 1290},
    )
    assert drawn == Usage(
        uncached_input_tokens=300,
        output_tokens=1300,
        image_input_tokens=258,
        image_output_tokens=1290,
    )
