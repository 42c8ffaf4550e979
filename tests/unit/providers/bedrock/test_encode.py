"""Requests for ConverseStream, with the rules of turns that Converse enforces.

Keeps C12, C13, C55.
"""

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from tollgate.core.content import Provenance, Reasoning, Refusal, Text, ToolCall
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    Sampling,
    SystemMessage,
    Tool,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from tollgate.core.signers import BEDROCK
from tollgate.providers.ports.base import Guardrail, Target, WireRequest
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import codec_of

TARGET = Target(
    provider="aws",
    model="acme/m",
    upstream_model="us.acme.m-20250514-v1:0",
    output_tokens_max=4096,
)
WEATHER = Tool(name="weather", description="The weather.", parameters={"type": "object"})


def texts(*parts: str) -> tuple[Text, ...]:
    return tuple(Text(text=part) for part in parts)


def user(*parts: str) -> UserMessage:
    return UserMessage(content=texts(*parts))


def system(text: str) -> SystemMessage:
    return SystemMessage(content=texts(text))


def call(id_: str = "a", name: str = "weather", arguments: str = "{}") -> ToolCall:
    return ToolCall(id=id_, name=name, arguments=arguments)


def assistant(*parts: Text | Reasoning | Refusal | ToolCall) -> AssistantMessage:
    return AssistantMessage(content=parts)


def result(id_: str, *parts: str) -> ToolMessage:
    return ToolMessage(call_id=id_, content=texts(*parts))


def encoded(*messages: Message, **fields: Any) -> WireRequest:
    request = GenerationRequest(model="acme/m", messages=messages, **fields)
    return codec_of("bedrock").encode(request, TARGET)


def turns(*messages: Message) -> Any:
    return encoded(*messages).body["messages"]


def refusal(*messages: Message) -> str:
    with pytest.raises(RequestError) as raised:
        encoded(*messages)
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    assert raised.value.param == "messages"
    return raised.value.message


def tool_result(id_: str, text: str) -> Any:
    return {"toolResult": {"toolUseId": id_, "content": [{"text": text}]}}


def test_the_path_names_the_model_escaped() -> None:
    assert encoded(user("Hi")).path == "/model/us.acme.m-20250514-v1%3A0/converse-stream"


def test_text_and_multi_turn() -> None:
    assert turns(user("Hi"), assistant(Text(text="Hello.")), user("Bye")) == [
        {"role": "user", "content": [{"text": "Hi"}]},
        {"role": "assistant", "content": [{"text": "Hello."}]},
        {"role": "user", "content": [{"text": "Bye"}]},
    ]


@pytest.mark.parametrize("knows_status", [True, False])
def test_c80_a_result_says_that_its_tool_failed_or_the_caller_is_told(knows_status: bool) -> None:
    target = replace(TARGET, dialect=Dialect(failed_results=knows_status))
    failed = ToolMessage(call_id="a", content=texts("no"), failed=True)
    messages = (user("Weather?"), assistant(call("a")), failed)
    wire = codec_of("bedrock").encode(GenerationRequest(model="m", messages=messages), target)
    said: Any = wire.body["messages"]
    (shown,) = said[2]["content"]
    assert shown["toolResult"].get("status") == ("error" if knows_status else None)
    assert wire.adapted == (() if knows_status else ("tool_result.is_error",))


def test_q8_leading_system_is_hoisted_and_later_system_keeps_its_place() -> None:
    body = encoded(
        system("One."),
        SystemMessage(content=texts("Two."), role="developer"),
        user("Hi"),
        system("Three."),
        user("Bye"),
    ).body
    assert body["system"] == [{"text": "One."}, {"text": "Two."}]
    assert body["messages"] == [
        {
            "role": "user",
            "content": [
                {"text": "Hi"},
                {"text": "<system>\nThree.\n</system>"},
                {"text": "Bye"},
            ],
        }
    ]


def test_q4_runs_of_one_role_become_one_turn_in_order() -> None:
    assert turns(
        user("a"), user("b", "c"), assistant(Text(text="d")), assistant(Text(text="e"))
    ) == [
        {"role": "user", "content": [{"text": "a"}, {"text": "b"}, {"text": "c"}]},
        {"role": "assistant", "content": [{"text": "d"}, {"text": "e"}]},
    ]


def test_q1_q2_parallel_results_and_the_text_after_them_are_one_turn() -> None:
    said = turns(
        user("Weather?"),
        assistant(call("a"), call("b")),
        result("b", "rain"),
        result("a", "sun"),
        user("Thanks."),
    )
    assert [turn["role"] for turn in said] == ["user", "assistant", "user"]
    assert said[2]["content"] == [
        tool_result("b", "rain"),
        tool_result("a", "sun"),
        {"text": "Thanks."},
    ]


@pytest.mark.parametrize(
    "rest",
    [
        [],
        [user("Never mind.")],
        [system("Be brief."), result("b", "sun")],
        [assistant(Text(text="x"))],
        [result("a", "rain")],
    ],
)
def test_q3_a_call_without_a_result_is_refused_by_its_id(rest: list[Message]) -> None:
    message = refusal(user("?"), assistant(call("a"), call("b")), *rest)
    assert "'b'" in message


@pytest.mark.parametrize(
    "messages",
    [
        [user("?"), result("zz", "x")],
        [user("?"), assistant(call("a")), result("a", "x"), result("zz", "y")],
        [user("?"), assistant(call("zz")), result("zz", "x"), result("zz", "y")],
        [user("?"), assistant(call("zz")), result("zz", "x"), user("!"), result("zz", "y")],
    ],
)
def test_q3_a_result_without_a_call_is_refused_by_its_id(messages: list[Message]) -> None:
    assert "'zz'" in refusal(*messages)


def test_two_open_calls_of_one_id_are_refused() -> None:
    assert "'a'" in refusal(user("?"), assistant(call("a"), call("a")), result("a", "x"))


def test_q5_tool_history_without_tools_brings_its_tools_along() -> None:
    body = encoded(user("?"), assistant(call("a", "now")), result("a", "noon")).body
    schema = {"json": {"type": "object", "properties": {}}}
    assert body["toolConfig"] == {"tools": [{"toolSpec": {"name": "now", "inputSchema": schema}}]}


@pytest.mark.parametrize("empty", ["", " ", "\n\t"])
def test_q6_q7_empty_text_is_left_out_and_an_empty_result_has_a_placeholder(empty: str) -> None:
    body = encoded(
        system(empty),
        user("Hi", empty),
        assistant(Text(text=empty), call("a")),
        result("a", empty),
    ).body
    assert "system" not in body
    assert body["messages"] == [
        {"role": "user", "content": [{"text": "Hi"}]},
        {
            "role": "assistant",
            "content": [{"toolUse": {"toolUseId": "a", "name": "weather", "input": {}}}],
        },
        {"role": "user", "content": [tool_result("a", "(no output)")]},
    ]


@pytest.mark.parametrize("messages", [[], [user("")], [system("Be brief.")]])
def test_a_conversation_without_any_turn_is_refused(messages: list[Message]) -> None:
    assert "at least one message" in refusal(*messages)


@pytest.mark.parametrize(
    ("arguments", "value"),
    [
        ("", {}),
        ("{}", {}),
        ('{"id": 12345678901234567890123}', {"id": 12345678901234567890123}),
        ('{"a": [1, 1.5, null, true, "ü"]}', {"a": [1, 1.5, None, True, "ü"]}),
    ],
)
def test_q14_arguments_become_an_object_with_every_digit(arguments: str, value: Any) -> None:
    said = turns(user("?"), assistant(call(arguments=arguments)), result("a", "x"))
    assert said[1]["content"][0]["toolUse"]["input"] == value


@pytest.mark.parametrize(
    "arguments", ["{", "[]", "1", "null", '{"a": NaN}', "{'a': 1}", "[" * 9000]
)
def test_q14_arguments_that_are_no_json_object_are_refused_by_the_id(arguments: str) -> None:
    assert "'a'" in refusal(user("?"), assistant(call(arguments=arguments)), result("a", "x"))


def test_an_id_of_another_form_is_replaced_alike_in_call_and_result() -> None:
    foreign = "call/" + "x" * 70
    said = turns(user("?"), assistant(call(foreign)), result(foreign, "x"))
    called = said[1]["content"][0]["toolUse"]["toolUseId"]
    assert called == said[2]["content"][0]["toolResult"]["toolUseId"]
    assert len(called) <= 64


def test_q33_reasoning_goes_back_as_it_was_signed_and_unsigned_reasoning_does_not() -> None:
    said = turns(
        user("?"),
        assistant(
            Reasoning(text="hm", provenance=Provenance(signer=BEDROCK, signature="c2ln")),
            Reasoning(text="", provenance=Provenance(signer=BEDROCK, data="\0\0\0")),
            Reasoning(text="from elsewhere"),
            Reasoning(text="of nobody", provenance=Provenance(signer=None, signature="c2ln")),
            Refusal(text="No."),
        ),
    )
    assert said[1]["content"] == [
        {"reasoningContent": {"reasoningText": {"text": "hm", "signature": "c2ln"}}},
        {"reasoningContent": {"redactedContent": "AAAA"}},
        {"text": "No."},
    ]


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (None, None),
        (ToolChoice(mode="auto"), {"auto": {}}),
        (ToolChoice(mode="required"), {"any": {}}),
        (ToolChoice(mode="named", name="weather"), {"tool": {"name": "weather"}}),
    ],
)
def test_q17_tool_choice(choice: ToolChoice | None, expected: Any) -> None:
    config: Any = encoded(user("?"), tools=(WEATHER,), tool_choice=choice).body["toolConfig"]
    assert config["tools"] == [
        {
            "toolSpec": {
                "name": "weather",
                "description": "The weather.",
                "inputSchema": {"json": {"type": "object"}},
            }
        }
    ]
    assert config.get("toolChoice") == expected


def test_q17_choice_none_drops_the_tools_unless_the_history_needs_them() -> None:
    none = {"tools": (WEATHER, Tool(name="now")), "tool_choice": ToolChoice(mode="none")}
    plain = encoded(user("?"), **none)
    assert "toolConfig" not in plain.body
    assert plain.adapted == ()
    history = encoded(user("?"), assistant(call("a")), result("a", "x"), **none)
    config: Any = history.body["toolConfig"]
    assert [tool["toolSpec"]["name"] for tool in config["tools"]] == ["weather"]
    assert history.adapted == ("tool_choice",)


def test_c12_q37_the_output_limit_is_capped_and_absent_where_nobody_set_it() -> None:
    capped = encoded(user("?"), output_tokens_max=9999).body["inferenceConfig"]
    assert capped == {"maxTokens": 4096}
    assert "inferenceConfig" not in encoded(user("?")).body


def test_c13_what_converse_cannot_take_is_left_out_and_named() -> None:
    wire = encoded(
        user("?"),
        tools=(Tool(name="weather", strict=True),),
        parallel_tool_calls=False,
        user="me",
        sampling=Sampling(
            temperature=1.7,
            top_p=0.9,
            top_k=3,
            min_p=0.1,
            presence_penalty=1,
            frequency_penalty=1,
            repetition_penalty=1,
            seed=7,
            stop=("END", ""),
            logit_bias={"1": 2},
        ),
    )
    assert wire.body["inferenceConfig"] == {
        "temperature": 1.0,
        "topP": 0.9,
        "stopSequences": ["END"],
    }
    assert wire.adapted == (
        "temperature",
        "top_k",
        "min_p",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "seed",
        "logit_bias",
        "parallel_tool_calls",
        "user",
        "tools.strict",
    )


def test_c55_a_guardrail_of_the_target_is_applied() -> None:
    guarded = replace(TARGET, guardrail=Guardrail(id="gr1", version="DRAFT"))
    request = GenerationRequest(model="m", messages=(user("Hello."),))
    assert codec_of("bedrock").encode(request, guarded).body["guardrailConfig"] == {
        "guardrailIdentifier": "gr1",
        "guardrailVersion": "DRAFT",
        "streamProcessingMode": "sync",
    }
    assert "guardrailConfig" not in codec_of("bedrock").encode(request, TARGET).body


WORDS = st.sampled_from(["", " ", "one", "two"])
HISTORY = st.lists(
    st.one_of(
        st.builds(lambda text: [system(text)], WORDS),
        st.builds(lambda first, second: [user(first, second)], WORDS, WORDS),
        st.builds(lambda text: [assistant(Text(text=text))], WORDS),
        st.builds(
            lambda said, got: [
                assistant(Text(text=said), call("a"), call("b")),
                result("b", got),
                result("a", got),
            ],
            WORDS,
            WORDS,
        ),
    ),
    max_size=8,
).map(lambda groups: [message for group in groups for message in group])


@given(HISTORY)
def test_q4_every_valid_history_has_alternating_turns_that_are_not_empty(
    messages: list[Message],
) -> None:
    said = turns(user("start"), *messages)
    roles = [turn["role"] for turn in said]
    assert all(before != after for before, after in pairwise(roles))
    assert all(turn["content"] for turn in said)
    texts_sent = [block["text"] for turn in said for block in turn["content"] if "text" in block]
    assert all(text.strip() for text in texts_sent)
