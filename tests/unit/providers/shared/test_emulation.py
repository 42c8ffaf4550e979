"""Structured output where a provider has none: the request changes, and its answer back.

Keeps C16, C18.
"""

from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.strategies import event_streams
from tollgate.core.content import Part, Reasoning, Text, ToolCall
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.events import (
    Ended,
    Finish,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    StreamEvent,
    StreamGrammar,
)
from tollgate.core.request import (
    GenerationRequest,
    JsonOutput,
    SchemaOutput,
    Tool,
    ToolChoice,
    UserMessage,
)
from tollgate.core.response import Fold, GenerationResponse
from tollgate.providers.ports.unwrapping import Unwrapping
from tollgate.providers.shared.emulation import (
    NOT_WRAPPED,
    OUTPUT_TOOL,
    Wrapping,
    replace_guided,
    use_output_tool,
)

CITY = {"type": "object", "properties": {"city": {"type": "string"}}}
OUTPUT = SchemaOutput(name="city", schema=CITY, strict=True, description="A city.")
WEATHER = Tool(name="weather")


def request(**fields: Any) -> GenerationRequest:
    messages = (UserMessage(content=(Text(text="?"),)),)
    return GenerationRequest(model="acme/m", messages=messages, **fields)


def part(index: int, kind: Part, *texts: str) -> list[StreamEvent]:
    deltas = [PartDelta(index=index, text=text) for text in texts]
    return [PartStart(index=index, part=kind), *deltas, PartEnd(index=index)]


def call(index: int, name: str, *arguments: str) -> list[StreamEvent]:
    return part(index, ToolCall(id=f"call_{index}", name=name, arguments=""), *arguments)


def unwrapped(wrapping: Wrapping, events: Iterable[StreamEvent]) -> list[StreamEvent]:
    unwrapping, grammar = Unwrapping(wrapping), StreamGrammar()
    emitted = [each for event in events for each in unwrapping.feed(event)]
    for event in emitted:
        grammar.accept(event)
    return emitted


def answer(
    wrapping: Wrapping, *parts: list[StreamEvent], finish: Finish = "tool_calls"
) -> GenerationResponse:
    events: list[StreamEvent] = [Started(), *(each for events in parts for each in events)]
    fold = Fold()
    for event in unwrapped(wrapping, [*events, Ended(finish=finish)]):
        fold.accept(event)
    return fold.response()


TOOL = Wrapping(tool=True)
CHOICE = Wrapping(choice=True)


def test_c16_a_schema_becomes_a_tool_that_must_be_called() -> None:
    changed = use_output_tool(request(output_format=OUTPUT))
    assert changed.output_format is None
    assert changed.tool_choice == ToolChoice(mode="named", name=OUTPUT_TOOL)
    (tool,) = changed.tools
    assert (tool.name, tool.parameters, tool.strict) == (OUTPUT_TOOL, CITY, True)
    assert tool.description is not None
    assert tool.description.endswith("A city.")


def test_c16_json_of_any_shape_becomes_a_tool_of_any_shape() -> None:
    (tool,) = use_output_tool(request(output_format=JsonOutput())).tools
    assert tool.parameters == {"type": "object"}


@pytest.mark.parametrize("choice", [None, ToolChoice(mode="auto")])
def test_c16_q25_the_callers_tools_stay_beside_the_answer(choice: ToolChoice | None) -> None:
    changed = use_output_tool(request(output_format=OUTPUT, tools=(WEATHER,), tool_choice=choice))
    assert [tool.name for tool in changed.tools] == ["weather", OUTPUT_TOOL]
    assert changed.tool_choice == ToolChoice(mode="required")


def test_c16_tools_that_may_not_be_called_are_not_there() -> None:
    none = ToolChoice(mode="none")
    changed = use_output_tool(request(output_format=OUTPUT, tools=(WEATHER,), tool_choice=none))
    assert [tool.name for tool in changed.tools] == [OUTPUT_TOOL]


@pytest.mark.parametrize(
    "choice", [ToolChoice(mode="required"), ToolChoice(mode="named", name="weather")]
)
def test_c16_a_call_that_the_caller_forces_comes_before_any_answer(choice: ToolChoice) -> None:
    changed = use_output_tool(request(output_format=OUTPUT, tools=(WEATHER,), tool_choice=choice))
    assert changed.tools == (WEATHER,)
    assert changed.tool_choice == choice


def test_c16_a_tool_of_the_same_name_is_refused() -> None:
    with pytest.raises(RequestError) as raised:
        use_output_tool(request(output_format=OUTPUT, tools=(Tool(name=OUTPUT_TOOL),)))
    assert raised.value.param == "tools"


@pytest.mark.parametrize(
    "schema", [CITY, '{"type":"object","properties":{"city":{"type":"string"}}}']
)
def test_c18_guided_json_becomes_a_schema(schema: Any) -> None:
    changed, wrapping = replace_guided(request(guided={"guided_json": schema}))
    assert changed.output_format == SchemaOutput(name="guided", schema=CITY)
    assert (changed.guided, wrapping) == ({}, NOT_WRAPPED)


def test_c18_guided_choice_becomes_an_enumeration_in_an_object() -> None:
    changed, wrapping = replace_guided(request(guided={"guided_choice": ["yes", "no"]}))
    assert wrapping == CHOICE
    assert isinstance(changed.output_format, SchemaOutput)
    properties: Any = changed.output_format.schema["properties"]
    assert properties == {"choice": {"enum": ["yes", "no"]}}


@pytest.mark.parametrize(
    "name",
    [
        "chat_template",
        "chat_template_kwargs",
        "guided_decoding_backend",
        "guided_grammar",
        "guided_regex",
        "guided_whitespace_pattern",
        "mm_processor_kwargs",
        "structural_tag",
    ],
)
def test_c18_what_only_vllm_can_do_is_refused_by_name(name: str) -> None:
    for beside in (None, JsonOutput()):
        with pytest.raises(RequestError) as raised:
            replace_guided(request(guided={"guided_json": CITY, name: "x"}, output_format=beside))
        assert raised.value.code is ErrorCode.INVALID_REQUEST
        assert raised.value.param == name
        assert raised.value.message.endswith("is not supported by this model's provider.")


@pytest.mark.parametrize(
    "fields",
    [
        {"guided": {"guided_json": "{"}},
        {"guided": {"guided_json": "[]"}},
        {"guided": {"guided_json": 1}},
        {"guided": {"guided_choice": []}},
        {"guided": {"guided_choice": "yes"}},
        {"guided": {"guided_json": CITY}, "output_format": JsonOutput()},
        {"guided": {"guided_json": CITY, "guided_choice": ["a"]}},
    ],
)
def test_c18_guides_that_cannot_be_followed_are_refused(fields: Any) -> None:
    with pytest.raises(RequestError):
        replace_guided(request(**fields))


def test_c16_the_call_is_told_as_content_piece_by_piece() -> None:
    events = unwrapped(TOOL, [Started(), *call(0, OUTPUT_TOOL, '{"city":', '"Paris"}')])
    assert events[1:] == part(0, Text(text=""), '{"city":', '"Paris"}')


def test_c16_q25_the_answer_finishes_with_stop() -> None:
    response = answer(TOOL, call(0, OUTPUT_TOOL, "{}"))
    assert response.parts == (Text(text="{}"),)
    assert response.finish == "stop"


@pytest.mark.parametrize("finish", ["length", "content_filter"])
def test_c16_an_answer_that_was_cut_says_so(finish: Finish) -> None:
    assert answer(TOOL, call(0, OUTPUT_TOOL, '{"ci'), finish=finish).finish == finish


def test_c16_what_is_said_beside_the_answer_is_not_part_of_the_json() -> None:
    before, after = part(0, Text(text=""), "Sure!"), part(2, Text(text=""), "Done.")
    response = answer(TOOL, before, call(1, OUTPUT_TOOL, "{}"), after)
    assert response.parts == (Text(text="{}"),)


def test_c16_only_the_first_answer_counts() -> None:
    response = answer(TOOL, call(0, OUTPUT_TOOL, "{}"), call(1, OUTPUT_TOOL, "[]"))
    assert response.parts == (Text(text="{}"),)


def test_c16_calls_of_the_callers_tools_are_told_as_calls() -> None:
    response = answer(
        TOOL, part(0, Text(text=""), "Let me see."), call(1, "weather", "{}"), finish="tool_calls"
    )
    assert response.parts == (
        ToolCall(id="call_1", name="weather", arguments="{}"),
        Text(text="Let me see."),
    )
    assert response.finish == "tool_calls"


def test_c16_a_model_that_only_talked_is_not_silenced() -> None:
    response = answer(TOOL, part(0, Text(text=""), "No."), finish="stop")
    assert response.parts == (Text(text="No."),)


def test_c16_thoughts_come_as_they_are_thought() -> None:
    response = answer(TOOL, part(0, Reasoning(text=""), "Hm."), call(1, OUTPUT_TOOL, "{}"))
    assert response.parts == (Reasoning(text="Hm."), Text(text="{}"))


@pytest.mark.parametrize(
    ("text", "choice"),
    [
        ('{"choice":"yes"}', "yes"),
        ('{"choice": 1}', "1"),
        ('{"choi', '{"choi'),
        ("yes", "yes"),
        ('{"other":"yes"}', '{"other":"yes"}'),
    ],
)
def test_c18_a_choice_is_taken_out_of_its_object(text: str, choice: str) -> None:
    pieces = [text[:4], text[4:]] if len(text) > 4 else [text]
    response = answer(CHOICE, part(0, Text(text=""), *pieces), finish="stop")
    assert response.parts == (Text(text=choice),)


def test_c18_a_choice_comes_out_of_a_call_too() -> None:
    both = Wrapping(tool=True, choice=True)
    response = answer(both, call(0, OUTPUT_TOOL, '{"choice":', '"no"}'))
    assert response.parts == (Text(text="no"),)
    assert response.finish == "stop"


@given(event_streams())
def test_what_is_not_wrapped_stays_what_it_is(events: list[StreamEvent]) -> None:
    assert unwrapped(NOT_WRAPPED, events) == events


@given(event_streams(), st.booleans())
def test_any_stream_unwraps_into_a_valid_one(events: list[StreamEvent], choice: bool) -> None:
    emitted = unwrapped(Wrapping(tool=True, choice=choice), events)
    assert sum(isinstance(event, Ended) for event in emitted) == 1
