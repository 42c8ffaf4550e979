"""Gemini's counts by modality; synthetic.

Keeps C26.
"""

from typing import Any

import pytest

from tollgate.core.usage import Usage
from tollgate.providers.codecs.gemini.usage import usage_of


def counted(**fields: Any) -> Usage:
    return usage_of(fields)


def of(modality: str, tokens: int) -> dict[str, object]:
    return {"modality": modality, "tokenCount": tokens}


def test_audio_that_was_heard_is_counted_apart_and_within_the_input() -> None:
    usage = counted(
        promptTokenCount=110,
        candidatesTokenCount=5,
        totalTokenCount=115,
        promptTokensDetails=[of("TEXT", 10), of("AUDIO", 100)],
    )
    assert (usage.uncached_input_tokens, usage.audio_input_tokens) == (110, 100)


def test_c65_audio_out_of_a_cache_is_a_class_of_its_own() -> None:
    usage = counted(
        promptTokenCount=110,
        cachedContentTokenCount=60,
        promptTokensDetails=[of("AUDIO", 100), of("TEXT", 10)],
        cacheTokensDetails=[of("AUDIO", 60)],
    )
    assert (usage.uncached_input_tokens, usage.audio_input_tokens) == (50, 40)
    assert (usage.cache_read_input_tokens, usage.cache_read_audio_input_tokens) == (60, 60)


@pytest.mark.parametrize("details", [[], [of("TEXT", 3)], [of("IMAGE", 3)]])
def test_what_nobody_says_of_audio_is_not_zero(details: list[object]) -> None:
    usage = counted(promptTokenCount=3, promptTokensDetails=details)
    assert usage.audio_input_tokens is None
    assert usage.audio_output_tokens is None
    assert usage.cache_read_audio_input_tokens is None
