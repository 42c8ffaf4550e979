"""Tools of a Responses request, and the choice among them.

Keeps C80.
"""

import json
from typing import Any

import pytest

from tests.unit.ingress.responses_samples import FORMAT
from tollgate.core.content import ToolCall
from tollgate.core.request import GenerationRequest, Grammar, TextInput, Tool, ToolChoice
from tollgate.ingress.base import NamespacedName, ParsedCall

NOW = {"type": "function", "name": "now", "parameters": {"type": "object"}, "strict": False}
SPAWN = {"type": "function", "name": "spawn", "parameters": {}, "strict": False}
AGENTS = {"type": "namespace", "name": "agents", "description": "Agents.", "tools": [SPAWN]}
CALL = {"type": "function_call", "call_id": "call_1", "name": "now", "arguments": "{}"}


def parsed(**fields: Any) -> ParsedCall:
    return FORMAT.parse(json.dumps({"model": "acme/large", "input": "Hi", **fields}).encode())


def asked(**fields: Any) -> GenerationRequest:
    return parsed(**fields).request


def test_c80_tools_of_functions_text_and_namespaces() -> None:
    grammar = {"type": "grammar", "syntax": "lark", "definition": "start: x"}
    call = parsed(
        tools=[
            NOW,
            {"type": "custom", "name": "patch", "description": "P.", "format": grammar},
            {"type": "custom", "name": "note"},
            AGENTS,
        ]
    )
    assert call.request.tools == (
        Tool(name="now", parameters={"type": "object"}, strict=False),
        Tool(
            name="patch",
            description="P.",
            text=TextInput(grammar=Grammar(syntax="lark", definition="start: x")),
        ),
        Tool(name="note", text=TextInput()),
        Tool(name="agents__spawn", strict=False),
    )
    assert call.namespaces == {"agents__spawn": NamespacedName(namespace="agents", name="spawn")}


@pytest.mark.parametrize(
    "others",
    [
        [{**NOW, "name": "agents__spawn"}],
        [
            {
                "type": "namespace",
                "name": "agents",
                "tools": [{**SPAWN, "name": "x" * 64}],
            }
        ],
    ],
)
def test_c80_names_of_nested_tools_are_unambiguous_and_no_longer_than_openais(
    others: list[Any],
) -> None:
    call = parsed(tools=[*others, AGENTS])
    names = [tool.name for tool in call.request.tools]
    assert len(set(names)) == 2
    assert all(len(name) <= 64 for name in names)
    assert NamespacedName(namespace="agents", name="spawn") in call.namespaces.values()


def test_c80_a_call_within_a_namespace_has_the_name_of_its_tool() -> None:
    call = {**CALL, "name": "spawn", "namespace": "agents"}
    request = asked(tools=[AGENTS], input=[{"role": "user", "content": "Hi"}, call])
    assert request.messages[1].content == (
        ToolCall(id="call_1", name="agents__spawn", arguments="{}"),
    )


def test_c80_tools_within_the_input_count_as_tools() -> None:
    added = {"type": "additional_tools", "role": "developer", "tools": [NOW, {"type": "later"}]}
    call = parsed(input=[added, {"role": "user", "content": "Hi"}])
    assert [tool.name for tool in call.request.tools] == ["now"]
    assert call.ignored == ("tools[]:later",)


@pytest.mark.parametrize("hosted", ["local_shell", "tool_search", "of_2031"])
def test_c80_a_hosted_tool_is_left_out_and_named(hosted: str) -> None:
    call = parsed(tools=[NOW, {"type": hosted, "external_web_access": True}])
    assert [tool.name for tool in call.request.tools] == ["now"]
    assert call.ignored == (f"tools[]:{hosted}",)
    assert [tool["name"] for tool in call.repeated["tools"]] == ["now"]  # type: ignore[index,union-attr]


@pytest.mark.parametrize(
    ("choice", "mode", "name"),
    [
        ("auto", "auto", None),
        ("none", "none", None),
        ("required", "required", None),
        ({"type": "function", "name": "now"}, "named", "now"),
        ({"type": "function", "name": "spawn", "namespace": "agents"}, "named", "agents__spawn"),
    ],
)
def test_c80_the_choice_among_tools(choice: Any, mode: Any, name: str | None) -> None:
    request = asked(tools=[NOW, AGENTS], tool_choice=choice, parallel_tool_calls=False)
    assert request.tool_choice == ToolChoice(mode=mode, name=name)
    assert request.parallel_tool_calls is False


def test_c80_only_allowed_tools_may_be_called() -> None:
    some = [{"type": "function", "name": "now"}, {"type": "web_search"}]
    choice = {"type": "allowed_tools", "mode": "required", "tools": some}
    call = parsed(tools=[NOW, AGENTS], tool_choice=choice)
    assert [tool.name for tool in call.request.tools] == ["now"]
    assert call.request.tool_choice == ToolChoice(mode="required")
    assert call.ignored == ("tool_choice.tools[]:web_search",)
