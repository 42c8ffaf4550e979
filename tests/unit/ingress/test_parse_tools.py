"""Tools of a chat completion request.

Keeps C15.
"""

from typing import Any

import pytest

from tests.unit.ingress.requests import HELLO, WEATHER, body, refusal, understood
from tollgate.core.request import (
    Tool,
    ToolChoice,
)


def test_c15_tools_are_understood() -> None:
    request = understood(tools=[WEATHER], tool_choice="auto", parallel_tool_calls=False).request
    assert request.tools == (
        Tool(
            name="get_weather",
            description="Get weather",
            parameters=WEATHER["function"]["parameters"],  # type: ignore[index]
            strict=True,
        ),
    )
    assert request.tool_choice == ToolChoice(mode="auto")
    assert request.parallel_tool_calls is False
    assert request.capabilities == frozenset({"tools"})


@pytest.mark.parametrize("mode", ["auto", "none", "required"])
def test_c15_a_choice_among_tools_is_kept(mode: str) -> None:
    assert understood(tools=[WEATHER], tool_choice=mode).request.tool_choice == ToolChoice(
        mode=mode  # type: ignore[arg-type]
    )


def test_c15_a_named_tool_is_one_of_the_tools() -> None:
    named = {"type": "function", "function": {"name": "get_weather"}}
    choice = understood(tools=[WEATHER], tool_choice=named).request.tool_choice
    assert choice == ToolChoice(mode="named", name="get_weather")
    other = {"type": "function", "function": {"name": "other"}}
    error = refusal(body(tools=[WEATHER], tool_choice=other))
    assert error.param == "tool_choice.function.name"


@pytest.mark.parametrize("tools", [[], None])
@pytest.mark.parametrize("choice", ["auto", "none", None])
def test_c15_no_tools_is_none_and_a_choice_among_none_says_nothing(
    tools: list[Any] | None, choice: str | None
) -> None:
    request = understood(tools=tools, tool_choice=choice, parallel_tool_calls=True).request
    assert request.tools == ()
    assert request.tool_choice is None
    assert request.parallel_tool_calls is None


def test_c15_a_tool_cannot_be_required_where_there_is_none() -> None:
    assert refusal(body(tools=[], tool_choice="required")).param == "tool_choice"


def test_c15_c40_a_result_of_no_call_is_named_by_its_place() -> None:
    call = {"id": "c", "type": "function", "function": {"name": "get_weather", "arguments": "{}"}}
    asked = {"role": "assistant", "tool_calls": [call]}
    results = [{"role": "tool", "tool_call_id": id_, "content": "Mild."} for id_ in ("c", "d")]
    assert len(understood(messages=[*HELLO, asked, results[0]]).request.messages) == 3
    error = refusal(body(messages=[*HELLO, asked, *results]))
    assert error.param == "messages[3].tool_call_id"
