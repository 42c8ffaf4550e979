"""The most that rounds are.

Keeps C66, C73.
"""

import pytest

from tollgate.core.records.generation import RoundsBound
from tollgate.routing.planning.round_sizes import list_round_sizes

BOUND = RoundsBound(rounds_max=3, result_tokens=1_000, fees_nano_usd=0)


@pytest.mark.parametrize(
    ("answers_max", "context", "expected"),
    [
        (None, 10_000, [(100, 50), (1_150, 50), (1_200, 50)]),
        # All answers together have 60 tokens, and each at most 50.
        (60, 10_000, [(100, 0), (1_150, 0), (1_160, 60)]),
        (10_000, 10_000, [(100, 0), (1_150, 0), (1_200, 150)]),
        (None, 1_100, [(100, 50), (1_100, 50), (1_100, 50)]),
    ],
)
def test_c73_a_later_prompt_has_the_answers_and_results_before_it(
    answers_max: int | None, context: int, expected: list[tuple[int, int]]
) -> None:
    sizes = list_round_sizes(
        BOUND, prompt=100, context=context, answer_max=50, answers_max=answers_max
    )
    assert [(size.prompt, size.output) for size in sizes] == expected


def test_c73_a_provider_that_searches_by_itself_has_results_in_the_first_prompt() -> None:
    first, *_ = list_round_sizes(
        BOUND,
        prompt=100,
        context=10_000,
        answer_max=50,
        answers_max=None,
        searches_at_once=True,
    )
    assert first.prompt == 1_100
