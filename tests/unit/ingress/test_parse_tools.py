"""Tools of a chat completion request.

Keeps C15, C20.
"""

from typing import Any

import pytest

from tests.unit.ingress.requests import HELLO, WEATHER, body, refusal, understood
from tollgate.core.content import ToolCall
from tollgate.core.request import (
    AssistantMessage,
    Grammar,
    TextInput,
    Tool,
    ToolChoice,
)

LARK = 'start: "*** Begin Patch"'
PATCH: Any = {
    "type": "custom",
    "custom": {
        "name": "apply_patch",
        "description": "Edits files.",
        "format": {"type": "grammar", "grammar": {"syntax": "lark", "definition": LARK}},
    },
}
NOTE: Any = {"type": "custom", "custom": {"name": "note"}}


def allowed(mode: str, *tools: Any) -> Any:
    return {"type": "allowed_tools", "allowed_tools": {"mode": mode, "tools": list(tools)}}


def by_name(name: str, type_: str = "custom") -> Any:
    return {"type": type_, type_: {"name": name}}


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


@pytest.mark.parametrize("parameters", [{}, {"parameters": None}, {"parameters": {}}])
def test_c15_a_function_without_parameters_takes_none(parameters: Any) -> None:
    tool = {"type": "function", "function": {"name": "now", **parameters}}
    assert understood(tools=[tool]).request.tools == (Tool(name="now", parameters={}),)


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


def test_c15_a_tool_of_free_text_is_understood() -> None:
    text = {"type": "custom", "custom": {"name": "log", "format": {"type": "text"}}}
    call = understood(tools=[WEATHER, PATCH, NOTE, text], novelty=1)
    _, patch, note, log = call.request.tools
    grammar = Grammar(syntax="lark", definition=LARK)
    assert patch == Tool(
        name="apply_patch", description="Edits files.", text=TextInput(grammar=grammar)
    )
    assert note == Tool(name="note", text=TextInput())
    assert log == Tool(name="log", text=TextInput())


def test_c20_unknown_fields_of_a_tool_of_free_text_are_named() -> None:
    tool = {"type": "custom", "novelty": 1, "custom": {"name": "note", "novelty": 2}}
    assert set(understood(tools=[tool]).ignored) == {"tools[].novelty", "tools[].custom.novelty"}


def test_c15_a_call_with_free_text_comes_back() -> None:
    call = {"id": "call_1", "type": "custom", "custom": {"name": "note", "input": "a\nb"}}
    messages = [
        {"role": "user", "content": "Note it"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "call_1", "content": "noted"},
    ]
    request = understood(messages=messages, tools=[NOTE]).request
    assert request.messages[1] == AssistantMessage(
        content=(ToolCall(id="call_1", name="note", arguments="a\nb", is_text=True),)
    )


def test_c15_a_named_tool_of_free_text_is_one_of_the_tools() -> None:
    request = understood(tools=[WEATHER, NOTE], tool_choice=by_name("note")).request
    assert request.tool_choice == ToolChoice(mode="named", name="note")


@pytest.mark.parametrize("mode", ["auto", "required"])
def test_c15_allowed_tools_leave_the_others_out(mode: str) -> None:
    choice = allowed(mode, by_name("note"), by_name("get_weather", "function"))
    request = understood(tools=[WEATHER, PATCH, NOTE], tool_choice=choice).request
    assert [tool.name for tool in request.tools] == ["get_weather", "note"]
    assert request.tool_choice == ToolChoice(mode=mode)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"tools": [{"type": "novelty"}]}, "tools[0].type"),
        ({"tools": [{"function": {"name": "x"}}]}, "tools[0].type"),
        ({"tools": [{"type": "custom"}]}, "tools[0].custom"),
        ({"tools": [{"type": "custom", "custom": {}}]}, "tools[0].custom.name"),
        (
            {"tools": [{"type": "custom", "custom": {"name": "x", "format": {"type": "json"}}}]},
            "tools[0].custom.format.type",
        ),
        (
            {"tools": [{"type": "custom", "custom": {"name": "x", "format": {"type": "grammar"}}}]},
            "tools[0].custom.format.grammar",
        ),
        ({"tools": [NOTE], "tool_choice": by_name("x")}, "tool_choice.custom.name"),
        (
            {"tools": [NOTE], "tool_choice": by_name("note", "function")},
            "tool_choice.function.name",
        ),
        ({"tools": [NOTE], "tool_choice": {"type": "novelty"}}, "tool_choice"),
        (
            {"tools": [NOTE], "tool_choice": allowed("none", by_name("note"))},
            "tool_choice.allowed_tools.mode",
        ),
        (
            {"tools": [NOTE], "tool_choice": allowed("auto", by_name("note"), by_name("x"))},
            "tool_choice.allowed_tools.tools[1].custom.name",
        ),
        ({"tools": [NOTE], "tool_choice": allowed("auto")}, "tool_choice.allowed_tools.tools"),
    ],
)
def test_c15_a_fault_of_a_tool_names_its_field(fields: Any, param: str) -> None:
    assert refusal(body(**fields)).param == param


def test_c15_a_call_of_an_unknown_type_names_it() -> None:
    call = {"id": "call_1", "type": "novelty", "novelty": {}}
    messages = [{"role": "assistant", "tool_calls": [call]}]
    assert refusal(body(messages=messages)).param == "messages[0].tool_calls[0].type"
