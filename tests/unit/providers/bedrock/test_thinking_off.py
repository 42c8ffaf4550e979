"""Claudes on Bedrock that think by default.

Keeps C15, C17.
"""

from typing import Any

import pytest

from tests.unit.providers.bedrock.test_encode_content import encoded, target
from tollgate.core.request import JsonOutput, ReasoningOptions, Tool, ToolChoice
from tollgate.providers.ports.base import Target
from tollgate.providers.ports.dialect import ClaudeDialect

NONE = ReasoningOptions(effort="none")
HIGH = ReasoningOptions(effort="high")
FORCED: dict[str, Any] = {
    "tools": (Tool(name="weather"),),
    "tool_choice": ToolChoice(mode="required"),
}


def claude(off: Any, **more: Any) -> Target:
    return target(
        "reasoning", reasoning="claude_adaptive", claude=ClaudeDialect(thinking_off=off, **more)
    )


def choice_and_fields(wire: Any) -> tuple[Any, Any]:
    config = wire.body.get("toolConfig", {})
    return config.get("toolChoice"), wire.body.get("additionalModelRequestFields")


@pytest.mark.parametrize(
    ("off", "wanted", "fields", "adapted"),
    [
        ("absent", None, None, ()),
        ("absent", NONE, None, ()),
        ("disabled", None, None, ()),
        ("disabled", NONE, {"thinking": {"type": "disabled"}}, ()),
        ("between_tools", NONE, {"thinking": {"type": "between_tools"}}, ()),
        ("never", None, None, ()),
        ("never", NONE, {"output_config": {"effort": "low"}}, ("reasoning",)),
    ],
)
def test_c17_q36_thinking_is_declined_in_the_word_of_the_generation(
    off: str, wanted: ReasoningOptions | None, fields: Any, adapted: tuple[str, ...]
) -> None:
    wire = encoded(to=claude(off), reasoning=wanted)
    assert choice_and_fields(wire) == (None, fields)
    assert wire.adapted == adapted


@pytest.mark.parametrize(
    ("off", "wanted", "fields", "adapted"),
    [
        ("absent", None, None, ()),
        ("absent", HIGH, None, ("reasoning",)),
        ("disabled", None, {"thinking": {"type": "disabled"}}, ()),
        ("disabled", HIGH, {"thinking": {"type": "disabled"}}, ("reasoning",)),
    ],
)
def test_c15_q17_a_call_is_forced_of_a_claude_that_stops_thinking_for_it(
    off: str, wanted: ReasoningOptions | None, fields: Any, adapted: tuple[str, ...]
) -> None:
    wire = encoded(to=claude(off), reasoning=wanted, **FORCED)
    assert choice_and_fields(wire) == ({"any": {}}, fields)
    assert wire.adapted == adapted


def test_c15_q17_a_forced_call_of_a_claude_that_always_thinks_is_asked_for_and_that_is_told() -> (
    None
):
    wire = encoded(to=claude("never"), **FORCED)
    assert choice_and_fields(wire) == ({"auto": {}}, None)
    assert wire.adapted == ("tool_choice",)
    able = encoded(to=claude("never", forced_calls_while_thinking=True), **FORCED)
    assert choice_and_fields(able) == ({"any": {}}, None)
    emulated = encoded(to=claude("never"), output_format=JsonOutput())
    assert emulated.adapted == ("response_format",)


@pytest.mark.parametrize(("exclude", "display"), [(False, "summarized"), (True, "omitted")])
def test_q36_the_text_of_thoughts_is_asked_for(exclude: bool, display: str) -> None:
    wire = encoded(to=claude("never"), reasoning=ReasoningOptions(enabled=True, exclude=exclude))
    assert choice_and_fields(wire) == (None, {"thinking": {"type": "adaptive", "display": display}})


ALONE = ReasoningOptions(effort="high", effort_alone=True, display_open=True)
DECLINED = ReasoningOptions(enabled=False, effort="high", effort_alone=True)


@pytest.mark.parametrize(
    ("off", "wanted", "fields", "adapted"),
    [
        ("absent", ALONE, {"output_config": {"effort": "high"}}, ()),
        ("never", ALONE, {"output_config": {"effort": "high"}}, ()),
        (
            "disabled",
            DECLINED,
            {"thinking": {"type": "disabled"}, "output_config": {"effort": "high"}},
            (),
        ),
    ],
)
def test_c17_an_effort_of_the_whole_answer_switches_no_thinking_on(
    off: str, wanted: ReasoningOptions, fields: Any, adapted: tuple[str, ...]
) -> None:
    wire = encoded(to=claude(off), reasoning=wanted)
    assert choice_and_fields(wire) == (None, fields)
    assert wire.adapted == adapted


def test_c17_models_that_think_by_tokens_have_no_effort_of_an_answer() -> None:
    wire = encoded(to=target("reasoning", reasoning="claude_budget"), reasoning=ALONE)
    assert choice_and_fields(wire) == (None, None)
    assert wire.adapted == ("reasoning",)


def test_c80_showing_thoughts_is_left_to_the_model_where_the_caller_leaves_it_open() -> None:
    wire = encoded(to=claude("never"), reasoning=ReasoningOptions(enabled=True, display_open=True))
    assert choice_and_fields(wire) == (None, {"thinking": {"type": "adaptive"}})
