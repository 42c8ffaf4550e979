"""Tools of free text: native in the Responses format, emulated by a function elsewhere.

Keeps C80. Shapes: OpenAI's published schemas of custom tools (seen 2026-11-21); frames are
synthetic.
"""

from typing import Any

import pytest

from tests.unit.providers.decoding import decoded, folded, sse_frames
from tests.upstream import responses_events as upstream
from tollgate.core.content import Part, Text, ToolCall
from tollgate.core.events import Ended, PartDelta, PartEnd, PartStart, Started
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Grammar,
    TextInput,
    Tool,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from tollgate.core.response import Fold
from tollgate.core.signers import OPENAI
from tollgate.providers.codecs.openai_responses.decode import ResponsesDecoder
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import FormatName, codec_of
from tollgate.providers.ports.unwrapping import Unwrapping, encode_request
from tollgate.providers.shared.emulation import Wrapping
from tollgate.routing.planning.prompt_size import PromptSize

GRAMMAR = Grammar(syntax="lark", definition="start: /.+/")
PATCH = Tool(name="apply_patch", description="Edit.", text=TextInput(grammar=GRAMMAR))
NOTE = Tool(name="note", text=TextInput())
WEATHER = Tool(name="weather", parameters={"type": "object", "properties": {}})
ASKED = UserMessage(content=(Text(text="Edit it."),))
CALL = ToolCall(id="call_1", name="apply_patch", arguments='*** "a"\n', is_text=True)
HISTORY = (
    ASKED,
    AssistantMessage(content=(CALL,)),
    ToolMessage(call_id="call_1", content=(Text(text="done"),)),
)


def encoded(
    format_name: FormatName = "openai_chat",
    *,
    text_tools: bool = False,
    messages: Any = (ASKED,),
    tools: tuple[Tool, ...] = (PATCH, WEATHER),
    **fields: Any,
) -> WireRequest:
    target = Target(
        provider="acme",
        model="acme/m",
        upstream_model="m-1",
        dialect=Dialect(text_tools=text_tools),
        supports=frozenset({"tools"}),
        output_tokens_max=4096,
    )
    request = GenerationRequest(model="acme/m", messages=messages, tools=tools, **fields)
    return encode_request(codec_of(format_name), request, target)


def body(*args: Any, **fields: Any) -> Any:
    return encoded(*args, **fields).body


def test_c80_elsewhere_a_text_tool_is_a_function_of_one_text() -> None:
    patch, weather = body()["tools"]
    assert patch["function"]["name"] == "apply_patch"
    assert patch["function"]["parameters"] == {
        "type": "object",
        "properties": {
            "input": {
                "type": "string",
                "description": "Follows this lark grammar:\nstart: /.+/",
            }
        },
        "required": ["input"],
        "additionalProperties": False,
    }
    assert weather["function"]["name"] == "weather"


@pytest.mark.parametrize("format_name", ["openai_chat", "anthropic", "bedrock", "gemini"])
def test_c80_no_other_format_has_text_tools_whatever_its_dialect_says(
    format_name: FormatName,
) -> None:
    wire = encoded(format_name, text_tools=True)
    assert wire.wrapping.text_tools == {"apply_patch"}
    assert "lark grammar" in str(wire.body)


def test_c80_an_earlier_call_of_free_text_is_a_call_of_that_function() -> None:
    calls = body(messages=HISTORY)["messages"][1]["tool_calls"]
    assert calls[0]["function"] == {
        "name": "apply_patch",
        "arguments": '{"input":"*** \\"a\\"\\n"}',
    }


def test_c80_an_earlier_call_is_rewritten_though_its_tool_is_gone() -> None:
    calls = body(messages=HISTORY, tools=())["messages"][1]["tool_calls"]
    assert calls[0]["function"]["arguments"] == '{"input":"*** \\"a\\"\\n"}'


def test_a_request_without_text_tools_is_not_wrapped() -> None:
    assert encoded(tools=(WEATHER,)).wrapping == Wrapping()


def unwrapped(*arguments: str, name: str = "apply_patch") -> tuple[Part, ...]:
    unwrapping, fold = Unwrapping(Wrapping(text_tools=frozenset({"apply_patch"}))), Fold()
    called = ToolCall(id="call_1", name=name, arguments="")
    deltas = [PartDelta(index=0, text=text) for text in arguments]
    events = [Started(), PartStart(index=0, part=called), *deltas, PartEnd(index=0)]
    for event in (*events, Ended(finish="tool_calls")):
        for emitted in unwrapping.feed(event):
            fold.accept(emitted)
    return fold.parts


def test_c80_the_callers_tool_gets_the_text_and_not_the_object_around_it() -> None:
    assert unwrapped('{"input":"*** \\"', 'a\\"\\n"}') == (CALL,)


@pytest.mark.parametrize("written", ["*** as it is", '{"patch":"x"}', '{"input":5}', "[]", ""])
def test_c80_arguments_that_are_no_such_object_are_kept_as_they_are(written: str) -> None:
    (call,) = unwrapped(written)
    assert isinstance(call, ToolCall)
    assert (call.arguments, call.is_text) == (written, True)


def test_a_call_of_another_tool_is_left_alone() -> None:
    (call,) = unwrapped('{"input":"x"}', name="weather")
    assert call == ToolCall(id="call_1", name="weather", arguments='{"input":"x"}')


def test_c80_responses_has_text_tools_of_its_own() -> None:
    sent = body("openai_responses", text_tools=True, tools=(PATCH, NOTE))
    assert sent["tools"] == [
        {
            "type": "custom",
            "name": "apply_patch",
            "description": "Edit.",
            "format": {"type": "grammar", "syntax": "lark", "definition": "start: /.+/"},
        },
        {"type": "custom", "name": "note"},
    ]


def test_c80_a_row_of_responses_that_lacks_text_tools_gets_functions() -> None:
    sent = body("openai_responses", tools=(NOTE,))
    assert [tool["type"] for tool in sent["tools"]] == ["function"]


@pytest.mark.parametrize(("name", "kind"), [("apply_patch", "custom"), ("weather", "function")])
def test_c80_a_forced_call_names_the_kind_of_its_tool(name: str, kind: str) -> None:
    choice = ToolChoice(mode="named", name=name)
    sent = body("openai_responses", text_tools=True, tool_choice=choice)
    assert sent["tool_choice"] == {"type": kind, "name": name}


def test_c80_calls_of_free_text_and_their_results_are_items_of_their_own() -> None:
    assert body("openai_responses", text_tools=True, messages=HISTORY)["input"][1:] == [
        {
            "type": "custom_tool_call",
            "call_id": "call_1",
            "name": "apply_patch",
            "input": '*** "a"\n',
        },
        {"type": "custom_tool_call_output", "call_id": "call_1", "output": "done"},
    ]


def _item(text: str) -> dict[str, str]:
    return {
        "type": "custom_tool_call",
        "id": "ctc_1",
        "call_id": "call_1",
        "name": "apply_patch",
        "input": text,
    }


@pytest.mark.parametrize("is_streamed", [True, False])
def test_c80_a_call_of_free_text_is_read_from_its_pieces_or_whole(is_streamed: bool) -> None:
    pieces = [
        upstream.added(_item("")),
        upstream.event("custom_tool_call_input.delta", output_index=0, delta='*** "a"\n'),
        upstream.event("custom_tool_call_input.done", output_index=0, input='*** "a"\n'),
    ]
    whole = _item('*** "a"\n')
    frames = [
        upstream.created(),
        *(pieces if is_streamed else ()),
        upstream.done(whole),
        upstream.completed(whole),
    ]
    response = folded(decoded(ResponsesDecoder("acme", signer=OPENAI), sse_frames(frames)))
    assert (response.parts, response.finish) == ((CALL,), "tool_calls")


def test_a_grammar_counts_among_the_text_of_the_prompt() -> None:
    def estimate(tool: Tool) -> int:
        return PromptSize.of(
            GenerationRequest(model="m", messages=(ASKED,), tools=(tool,))
        ).estimate

    long = Grammar(syntax="regex", definition="x" * 400)
    without = estimate(Tool(name="t", text=TextInput()))
    assert estimate(Tool(name="t", text=TextInput(grammar=long))) == without + 100
