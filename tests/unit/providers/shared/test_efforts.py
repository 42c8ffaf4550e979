"""What a caller asks of a model's thinking, in the words that the model knows.

Keeps C17.
"""

import pytest

from tollgate.core.request import Effort, ReasoningOptions
from tollgate.providers.shared.efforts import (
    effort_wanted,
    nearest_effort,
    tokens_wanted,
    wants_thoughts,
)


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (ReasoningOptions(), None),
        (ReasoningOptions(exclude=True), None),
        (ReasoningOptions(effort="none"), False),
        (ReasoningOptions(enabled=False), False),
        (ReasoningOptions(tokens_max=0), False),
        (ReasoningOptions(effort="low"), True),
        (ReasoningOptions(enabled=True), True),
        (ReasoningOptions(tokens_max=1), True),
    ],
)
def test_c17_a_caller_asks_for_thoughts_for_none_or_leaves_it_open(
    wanted: ReasoningOptions, expected: bool | None
) -> None:
    assert wants_thoughts(wanted) is expected


@pytest.mark.parametrize(
    ("tokens", "effort"),
    [(0, "none"), (1_000, "minimal"), (5_000, "low"), (16_000, "medium"), (40_000, "xhigh")],
)
def test_c17_a_budget_becomes_an_effort(tokens: int, effort: Effort) -> None:
    assert effort_wanted(ReasoningOptions(tokens_max=tokens)) == effort


@pytest.mark.parametrize(
    ("wanted", "known", "expected"),
    [
        ("high", ("low", "high"), "high"),
        ("medium", ("low", "high"), "low"),
        ("max", ("low", "high"), "high"),
        ("none", ("low", "high"), "low"),
        ("none", ("none", "high"), "none"),
        ("minimal", ("none", "low"), "low"),
        ("low", (), None),
    ],
)
def test_c17_the_nearest_known_effort_is_not_above_what_was_asked(
    wanted: Effort, known: tuple[Effort, ...], expected: Effort | None
) -> None:
    assert nearest_effort(wanted, known) == expected


def test_c17_an_effort_becomes_a_budget_and_more_effort_a_larger_one() -> None:
    efforts: list[Effort] = ["minimal", "low", "medium", "high", "xhigh", "max"]
    budgets = [tokens_wanted(ReasoningOptions(effort=effort)) for effort in efforts]
    assert budgets == sorted(set(budgets))
    assert tokens_wanted(ReasoningOptions(tokens_max=7)) == 7
    assert tokens_wanted(ReasoningOptions(enabled=True)) == budgets[2]
