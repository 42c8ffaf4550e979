"""The tokens that a request counts against tokens per minute, before it is answered.

Keeps C61.
"""

import pytest

from tests.unit.routing.catalogs import catalog, plan_of, principal, request


@pytest.mark.parametrize(
    ("output_tokens_max", "counted"),
    [
        (None, 75 + 50),  # what is held, which is less than a model may answer
        (7, 75 + 7),
        (5_000, 75 + 5_000),
        (50_000, 75 + 10_000),  # no model answers more than its own limit
    ],
)
def test_c61_tokens_per_minute_count_the_prompt_and_the_longest_answer(
    output_tokens_max: int | None, counted: int
) -> None:
    held = catalog(defaults={"hold_output_tokens": 50})
    asked = request("smart", size_bytes=300, output_tokens_max=output_tokens_max)
    assert plan_of(held, asked, principal=principal()).tokens_max == counted


def test_c61_without_a_limit_no_more_is_counted_than_the_longest_model_of_the_plan_answers() -> (
    None
):
    held = catalog(defaults={"hold_output_tokens": 5_000})
    short = plan_of(held, request("acme/small"), principal=principal())
    chain = plan_of(held, request("smart"), principal=principal())
    assert (short.tokens_max, chain.tokens_max) == (75 + 100, 75 + 5_000)
