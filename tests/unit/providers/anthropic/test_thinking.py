"""The thinking that goes out for Claude, and the parts of a request that exclude it.

Keeps C17.
"""

from typing import Any

import pytest

from tests.unit.providers.anthropic.requests import (
    NEWER,
    OLDER,
    WEATHER,
    assistant,
    body,
    call,
    encoded,
    result,
    target,
    user,
)
from tollgate.core.content import Provenance, Reasoning, Text
from tollgate.core.request import ReasoningOptions, ToolChoice
from tollgate.core.signers import CLAUDE
from tollgate.providers.ports.base import WireRequest
from tollgate.providers.ports.dialect import ClaudeDialect, Dialect

REQUIRED = ToolChoice(mode="required")


def thinks(at: Dialect, **fields: Any) -> tuple[Any, Any, WireRequest]:
    """What is sent of thinking and effort."""
    asked = fields.pop("asked", ReasoningOptions(effort="high"))
    wire = encoded(*fields.pop("said", (user("?"),)), reasoning=asked, at=target(at), **fields)
    config: Any = wire.body.get("output_config", {})
    return wire.body.get("thinking"), config.get("effort"), wire


@pytest.mark.parametrize(
    ("asked", "limit", "budget", "adapted"),
    [
        (ReasoningOptions(effort="low"), None, 4_096, ()),
        (ReasoningOptions(effort="high"), None, 24_576, ()),
        (ReasoningOptions(enabled=True), None, 10_240, ()),
        (ReasoningOptions(effort="max"), 10_000, 8_000, ()),
        (ReasoningOptions(tokens_max=5_000), None, 5_000, ()),
        (ReasoningOptions(tokens_max=5_000), 4_000, 3_999, ("reasoning",)),
        (ReasoningOptions(tokens_max=10), None, 1_024, ("reasoning",)),
        (ReasoningOptions(tokens_max=5_000, effort="low"), None, 5_000, ("reasoning",)),
    ],
)
def test_q36_older_models_think_by_a_budget_below_the_limit(
    asked: ReasoningOptions, limit: int | None, budget: int, adapted: tuple[str, ...]
) -> None:
    config, effort, wire = thinks(OLDER, asked=asked, output_tokens_max=limit)
    assert config == {"type": "enabled", "budget_tokens": budget}
    assert effort is None
    assert wire.adapted == adapted


def test_q36_an_output_too_small_for_thoughts_has_none_and_that_is_told() -> None:
    config, _, wire = thinks(OLDER, output_tokens_max=1_024)
    assert config is None
    assert wire.adapted == ("reasoning",)


@pytest.mark.parametrize(
    ("asked", "effort", "adapted"),
    [
        (ReasoningOptions(effort="xhigh"), "xhigh", ()),
        (ReasoningOptions(effort="minimal"), "low", ("reasoning",)),
        (ReasoningOptions(enabled=True), None, ()),
        (ReasoningOptions(tokens_max=10_000), "medium", ("reasoning",)),
    ],
)
def test_q36_newer_models_think_by_effort_and_show_it(
    asked: ReasoningOptions, effort: str | None, adapted: tuple[str, ...]
) -> None:
    config, sent, wire = thinks(NEWER, asked=asked)
    assert config == {"type": "adaptive", "display": "summarized"}
    assert sent == effort
    assert wire.adapted == adapted


def test_q36_efforts_are_those_of_the_model_and_never_a_dearer_one() -> None:
    fewer = NEWER.model_copy(update={"efforts": ("low", "medium", "high", "max")})
    _, effort, wire = thinks(fewer, asked=ReasoningOptions(effort="xhigh"))
    assert effort == "high"
    assert wire.adapted == ("reasoning",)


def test_c17_excluded_thoughts_are_not_sent_for() -> None:
    config, _, _ = thinks(NEWER, asked=ReasoningOptions(effort="low", exclude=True))
    assert config == {"type": "adaptive", "display": "omitted"}


@pytest.mark.parametrize(
    ("off", "config", "effort", "adapted"),
    [
        ("absent", None, None, ()),
        ("disabled", {"type": "disabled"}, None, ()),
        ("between_tools", {"type": "between_tools"}, None, ()),
        ("never", None, "low", ("reasoning",)),
    ],
)
@pytest.mark.parametrize(
    "asked", [ReasoningOptions(effort="none"), ReasoningOptions(enabled=False)]
)
def test_c17_thinking_is_declined_as_the_model_wants_it(
    asked: ReasoningOptions, off: Any, config: Any, effort: str | None, adapted: tuple[str, ...]
) -> None:
    dialect = NEWER.model_copy(update={"claude": ClaudeDialect(thinking_off=off)})
    sent, told, wire = thinks(dialect, asked=asked)
    assert (sent, told, wire.adapted) == (config, effort, adapted)


def test_a_model_that_does_not_think_says_so() -> None:
    config, effort, wire = thinks(Dialect())
    assert (config, effort, wire.adapted) == (None, None, ("reasoning",))


def test_nobody_asks_and_nothing_is_sent_of_thinking() -> None:
    for dialect in (OLDER, NEWER):
        assert not {"thinking", "output_config"} & set(body(user("?"), at=target(dialect)))


def test_q17_a_forced_call_comes_before_thinking() -> None:
    config, _, wire = thinks(OLDER, tools=(WEATHER,), tool_choice=REQUIRED)
    assert config is None
    assert wire.body["tool_choice"] == {"type": "any"}
    assert wire.adapted == ("reasoning",)


def test_q17_a_model_that_thinks_unasked_is_told_not_to_where_a_call_is_forced() -> None:
    claude = ClaudeDialect(thinking_off="disabled")
    unasked = NEWER.model_copy(update={"claude": claude})
    forced = body(user("?"), tools=(WEATHER,), tool_choice=REQUIRED, at=target(unasked))
    assert forced["thinking"] == {"type": "disabled"}
    assert forced["tool_choice"] == {"type": "any"}


def test_q17_a_model_that_always_thinks_cannot_be_forced_and_that_is_told() -> None:
    _, _, wire = thinks(NEWER, tools=(WEATHER,), tool_choice=REQUIRED)
    assert wire.body["tool_choice"] == {"type": "auto"}
    assert wire.adapted == ("tool_choice",)


def test_q17_a_model_that_takes_both_gets_both() -> None:
    claude = ClaudeDialect(thinking_off="never", forced_calls_while_thinking=True)
    both = NEWER.model_copy(update={"claude": claude})
    config, _, wire = thinks(both, tools=(WEATHER,), tool_choice=REQUIRED)
    assert config is not None
    assert wire.body["tool_choice"] == {"type": "any"}
    assert wire.adapted == ()


def test_q9_what_is_to_be_continued_excludes_thinking() -> None:
    config, _, wire = thinks(OLDER, said=(user("?"), assistant(Text(text="He"))))
    assert config is None
    assert wire.adapted == ("reasoning",)


def test_q33_calls_that_lost_their_thoughts_go_on_without_a_budget() -> None:
    signed = Reasoning(text="hm", provenance=Provenance(signer=CLAUDE, signature="s"))
    lost = (user("?"), assistant(call()), result("a", "x"))
    kept = (user("?"), assistant(signed, call()), result("a", "x"))
    over = (*lost, assistant(Text(text="Sun.")), user("Thanks."))
    assert thinks(OLDER, said=lost)[0] is None
    assert thinks(OLDER, said=lost)[2].adapted == ("reasoning",)
    assert thinks(OLDER, said=kept)[0] is not None
    assert thinks(OLDER, said=over)[0] is not None
    assert thinks(NEWER, said=lost)[0] is not None


def adaptive(off: Any) -> Dialect:
    return Dialect(
        reasoning="claude_adaptive",
        efforts=("low", "medium", "high", "xhigh", "max"),
        claude=ClaudeDialect(thinking_off=off),
    )


ALONE = ReasoningOptions(effort="max", effort_alone=True, display_open=True)
DECLINED = ReasoningOptions(enabled=False, effort="max", effort_alone=True)


@pytest.mark.parametrize(
    ("off", "asked", "config", "effort", "adapted"),
    [
        ("absent", ALONE, None, "max", ()),
        ("disabled", ALONE, None, "max", ()),
        ("never", ALONE, None, "max", ()),
        ("absent", DECLINED, None, "max", ()),
        ("disabled", DECLINED, {"type": "disabled"}, "high", ("reasoning",)),
        ("between_tools", DECLINED, {"type": "between_tools"}, "high", ("reasoning",)),
        ("never", DECLINED, None, "max", ("reasoning",)),
    ],
)
def test_c17_an_effort_of_the_whole_answer_switches_no_thinking_on(
    off: str, asked: ReasoningOptions, config: Any, effort: str, adapted: tuple[str, ...]
) -> None:
    *sent, wire = thinks(adaptive(off), asked=asked)
    assert sent == [config, effort]
    assert wire.adapted == adapted


def test_c17_models_that_think_by_tokens_have_no_effort_of_an_answer() -> None:
    *sent, wire = thinks(OLDER, asked=ALONE)
    assert sent == [None, None]
    assert wire.adapted == ("reasoning",)


def test_c80_showing_thoughts_is_left_to_the_model_where_the_caller_leaves_it_open() -> None:
    config, _, _ = thinks(NEWER, asked=ReasoningOptions(enabled=True, display_open=True))
    assert config == {"type": "adaptive"}
