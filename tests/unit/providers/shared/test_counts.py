"""Counts of a provider are checked before they are added or subtracted.

Keeps C65.
"""

from collections.abc import Callable
from typing import Any

import pytest

from tollgate.core.usage import COUNT_MAX, Usage
from tollgate.providers.codecs.anthropic.decode import usage_of as usage_of_messages
from tollgate.providers.codecs.bedrock.decode import usage_of as usage_of_converse
from tollgate.providers.codecs.gemini.usage import usage_of as usage_of_gemini
from tollgate.providers.shared.counts import REST_MAX, count_of, rest_of_total, split
from tollgate.providers.shared.openai_usage import openai_usage_of, responses_usage_of

NO_COUNTS = [None, -1, -(10**6), 1.5, True, False, "many", "-3", "", [], {}, 10**30, float("inf")]
PROMPT_AND_OUTPUT = Usage(uncached_input_tokens=10, output_tokens=5)


@pytest.mark.parametrize("reported", [*NO_COUNTS, float("nan"), COUNT_MAX + 1, "9" * 5_000])
def test_c65_what_is_no_number_of_tokens_is_no_count(reported: Any) -> None:
    assert count_of(reported) is None


@pytest.mark.parametrize(
    ("reported", "count"), [(0, 0), (12, 12), (12.0, 12), ("12", 12), (COUNT_MAX, COUNT_MAX)]
)
def test_a_count_may_be_written_with_a_point_or_as_text(reported: Any, count: int) -> None:
    assert count_of(reported) == count


def test_c65_parts_are_cut_to_what_their_whole_has_left() -> None:
    assert split(10, 4, 3) == (3, (4, 3))
    assert split(10, 4, None) == (6, (4, None))
    assert split(10, 10**9, 7) == (0, (10, 0))


def test_c65_a_total_adds_no_tokens_that_no_answer_can_have() -> None:
    assert rest_of_total(109, 35, 12) == 62
    assert rest_of_total(5, 35, 12) is None
    assert rest_of_total(REST_MAX + 47, 35, 12) == REST_MAX
    assert rest_of_total(10**9, 35, 12) is None
    assert rest_of_total(None, 35) is None


CHAT = {"prompt_tokens": 10, "completion_tokens": 5}
RESPONSES = {"input_tokens": 10, "output_tokens": 5}
GEMINI = {"promptTokenCount": 10, "candidatesTokenCount": 5}
CONVERSE = {"inputTokens": 10, "outputTokens": 5}


@pytest.mark.parametrize("lie", NO_COUNTS)
@pytest.mark.parametrize(
    ("usage_of", "report", "place"),
    [
        (openai_usage_of, CHAT, "prompt_tokens_details.cached_tokens"),
        (openai_usage_of, CHAT, "prompt_tokens_details.cache_write_tokens"),
        (openai_usage_of, CHAT, "prompt_tokens_details"),
        (openai_usage_of, CHAT, "cached_tokens"),
        (openai_usage_of, CHAT, "total_tokens"),
        (openai_usage_of, CHAT, "completion_tokens_details.reasoning_tokens"),
        (responses_usage_of, RESPONSES, "input_tokens_details.cached_tokens"),
        (responses_usage_of, RESPONSES, "input_tokens_details.cache_write_tokens"),
        (responses_usage_of, RESPONSES, "output_tokens_details.reasoning_tokens"),
        (usage_of_gemini, GEMINI, "cachedContentTokenCount"),
        (usage_of_gemini, GEMINI, "toolUsePromptTokenCount"),
        (usage_of_gemini, GEMINI, "thoughtsTokenCount"),
        (usage_of_gemini, GEMINI, "totalTokenCount"),
        (usage_of_gemini, GEMINI, "promptTokensDetails"),
        (usage_of_messages, RESPONSES, "cache_read_input_tokens"),
        (usage_of_messages, RESPONSES, "cache_creation_input_tokens"),
        (usage_of_messages, RESPONSES, "cache_creation.ephemeral_1h_input_tokens"),
        (usage_of_messages, RESPONSES, "server_tool_use.web_search_requests"),
        (usage_of_converse, CONVERSE, "cacheReadInputTokens"),
        (usage_of_converse, CONVERSE, "cacheWriteInputTokens"),
        (usage_of_converse, CONVERSE, "cacheDetails"),
    ],
)
def test_c65_a_part_that_cannot_be_changes_no_other_count(
    usage_of: Callable[[Any], Usage], report: dict[str, Any], place: str, lie: Any
) -> None:
    for name in reversed(place.split(".")):
        lie = {name: lie}
    assert usage_of(report | lie) == PROMPT_AND_OUTPUT


def test_c65_a_total_of_a_thousand_million_invents_no_output() -> None:
    assert openai_usage_of(CHAT | {"total_tokens": 10**9}) == PROMPT_AND_OUTPUT
    gemini = {"promptTokenCount": 10, "totalTokenCount": 10**9}
    assert usage_of_gemini(gemini) == Usage(uncached_input_tokens=10)


def test_c65_no_cached_part_is_larger_than_its_prompt() -> None:
    lie = 10**9
    chat = openai_usage_of({"prompt_tokens": 10, "prompt_tokens_details": {"cached_tokens": lie}})
    details = {"cached_tokens": 4, "cache_write_tokens": lie}
    responses = responses_usage_of({"input_tokens": 10, "input_tokens_details": details})
    gemini = usage_of_gemini({"promptTokenCount": 10, "cachedContentTokenCount": lie})
    written = {"ephemeral_1h_input_tokens": lie}
    messages = usage_of_messages({"cache_creation_input_tokens": 10, "cache_creation": written})
    one_hour = [{"ttl": "1h", "inputTokens": lie}]
    converse = usage_of_converse({"cacheWriteInputTokens": 10, "cacheDetails": one_hour})
    assert {each.input_tokens for each in (chat, responses, gemini, messages, converse)} == {10}
