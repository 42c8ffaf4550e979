"""Requests in OpenAI's format and its dialects.

Keeps C10, C12, C13, C15.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tollgate.core.content import Reasoning, Refusal, Text, ToolCall
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
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import codec_of

HI = UserMessage(content=(Text(text="Hi"),))
WEATHER = Tool(name="weather", parameters={"type": "object", "properties": {"city": {}}})


def encoded(*messages: Message, dialect: Dialect | None = None, **fields: Any) -> WireRequest:
    target = Target(
        provider="acme",
        model="acme/m",
        upstream_model="m-1",
        dialect=dialect or Dialect(),
        output_tokens_max=4096,
    )
    request = GenerationRequest(model="acme/m", messages=messages or (HI,), **fields)
    return codec_of("openai_chat").encode(request, target)


def sent(message: Message, **dialect: Any) -> Any:
    messages: Any = encoded(message, dialect=Dialect(**dialect)).body["messages"]
    return messages[0]


def test_a_plain_request_asks_for_a_stream_with_usage() -> None:
    wire = encoded()
    assert wire.path == "/chat/completions"
    assert wire.body == {
        "model": "m-1",
        "messages": [{"role": "user", "content": "Hi"}],
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    assert wire.adapted == ()


def test_a_dialect_may_have_no_stream_options() -> None:
    assert "stream_options" not in encoded(dialect=Dialect(stream_usage=False)).body


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
@pytest.mark.parametrize(("asked", "capped"), [(100, 100), (9999, 4096)])
def test_c12_q37_the_output_limit_is_capped_under_the_name_of_the_dialect(
    name: Any, asked: int, capped: int
) -> None:
    body = encoded(dialect=Dialect(output_limit_field=name), output_tokens_max=asked).body
    limits = {key: value for key, value in body.items() if key.startswith("max_")}
    assert limits == {name: capped}


def test_c12_no_limit_is_sent_where_the_caller_set_none() -> None:
    assert not any(key.startswith("max_") for key in encoded().body)


def test_q10_developer_is_system_but_where_the_dialect_knows_it() -> None:
    message = SystemMessage(content=(Text(text="Be brief."),), role="developer")
    assert sent(message) == {"role": "system", "content": "Be brief."}
    assert sent(message, developer_role=True) == {"role": "developer", "content": "Be brief."}


def test_c10_names_and_several_texts_are_kept() -> None:
    message = UserMessage(content=(Text(text="a"), Text(text="b")), name="ann")
    assert sent(message) == {
        "role": "user",
        "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        "name": "ann",
    }


def test_c15_tool_history_needs_no_tools() -> None:
    call = ToolCall(id="call_1", name="now", arguments="")
    body = encoded(
        HI,
        AssistantMessage(content=(call,)),
        ToolMessage(call_id="call_1", content=()),
    ).body
    assert body["messages"] == [
        {"role": "user", "content": "Hi"},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "now", "arguments": "{}"},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_1", "content": ""},
    ]
    assert "tools" not in body


def test_a_refusal_goes_back_as_what_was_said() -> None:
    message = AssistantMessage(content=(Refusal(text="No."),))
    assert sent(message) == {"role": "assistant", "content": "No."}


def test_q35_reasoning_goes_back_only_where_the_dialect_wants_it() -> None:
    thought = AssistantMessage(content=(Reasoning(text="hm"), Text(text="So.")))
    assert sent(thought) == {"role": "assistant", "content": "So."}
    assert sent(thought, reasoning_field="reasoning_content") == {
        "role": "assistant",
        "content": "So.",
        "reasoning_content": "hm",
    }


def test_q35_turns_that_call_tools_have_the_field_be_it_empty() -> None:
    call = ToolCall(id="a", name="now", arguments="{}")
    message = AssistantMessage(content=(call,))
    assert sent(message, reasoning_field="reasoning_content")["reasoning_content"] == ""
    spoken = AssistantMessage(content=(Text(text="So."),))
    assert "reasoning_content" not in sent(spoken, reasoning_field="reasoning_content")


@given(st.text(min_size=1))
def test_q12_call_ids_fit_the_dialect_and_stay_together(id_: str) -> None:
    call = ToolCall(id=id_, name="now", arguments="{}")
    messages: Any = encoded(
        AssistantMessage(content=(call,)),
        ToolMessage(call_id=id_, content=()),
        dialect=Dialect(tool_call_id_length=9),
    ).body["messages"]
    called = messages[0]["tool_calls"][0]["id"]
    assert called == messages[1]["tool_call_id"]
    assert len(called) == 9
    assert called.isascii()
    assert called.isalnum()


def test_q12_an_id_that_fits_is_left_alone() -> None:
    message = ToolMessage(call_id="QAw0JBXkB", content=())
    assert sent(message, tool_call_id_length=9)["tool_call_id"] == "QAw0JBXkB"


@pytest.mark.parametrize(
    ("choice", "expected"),
    [
        (ToolChoice(mode="auto"), "auto"),
        (ToolChoice(mode="none"), "none"),
        (ToolChoice(mode="required"), "required"),
        (
            ToolChoice(mode="named", name="weather"),
            {"type": "function", "function": {"name": "weather"}},
        ),
    ],
)
def test_c15_tools_and_their_choice(choice: ToolChoice, expected: Any) -> None:
    body = encoded(tools=(WEATHER,), tool_choice=choice, parallel_tool_calls=False).body
    assert body["tools"] == [
        {
            "type": "function",
            "function": {"name": "weather", "parameters": dict(WEATHER.parameters)},
        }
    ]
    assert body["tool_choice"] == expected
    assert body["parallel_tool_calls"] is False


def test_c15_without_tools_nothing_about_tools_is_sent() -> None:
    body = encoded(tool_choice=ToolChoice(mode="auto"), parallel_tool_calls=True).body
    assert not {"tools", "tool_choice", "parallel_tool_calls"} & set(body)


def test_q26_a_strict_tool_is_closed_and_keeps_its_description() -> None:
    tool = Tool(name="now", description="The time.", strict=True)
    tools: Any = encoded(tools=(tool,)).body["tools"]
    assert tools[0]["function"] == {
        "name": "now",
        "description": "The time.",
        "parameters": {"type": "object", "properties": {}, "additionalProperties": False},
        "strict": True,
    }


SAMPLING = Sampling(
    temperature=0.0,
    top_p=0.5,
    top_k=3,
    min_p=0.1,
    presence_penalty=0.0,
    frequency_penalty=1.0,
    repetition_penalty=1.1,
    seed=0,
    stop=("END",),
    logit_bias={"1": 2.0},
)


def test_c13_what_the_server_refuses_is_left_out_and_named() -> None:
    wire = encoded(sampling=SAMPLING, user="me")
    assert wire.adapted == ("top_k", "min_p", "repetition_penalty")
    assert not set(wire.adapted) & set(wire.body)
    assert wire.body["temperature"] == 0.0
    assert wire.body["seed"] == 0
    assert wire.body["stop"] == ["END"]
    assert wire.body["logit_bias"] == {"1": 2.0}
    assert wire.body["user"] == "me"


def test_c13_a_server_that_refuses_nothing_gets_everything() -> None:
    wire = encoded(sampling=SAMPLING, dialect=Dialect(refuses=frozenset()))
    assert wire.adapted == ()
    assert (wire.body["top_k"], wire.body["min_p"]) == (3, 0.1)
    assert wire.body["repetition_penalty"] == 1.1


def test_c13_a_seed_goes_out_under_the_servers_own_name() -> None:
    wire = encoded(sampling=SAMPLING, dialect=Dialect(seed_field="random_seed"))
    assert wire.body["random_seed"] == 0
    assert "seed" not in wire.body
    assert "seed" not in wire.adapted
    refusing = Dialect(seed_field="random_seed", refuses=frozenset({"seed"}))
    refused = encoded(sampling=SAMPLING, dialect=refusing)
    assert "seed" in refused.adapted
    assert not {"seed", "random_seed"} & set(refused.body)


def test_c13_only_what_the_caller_set_is_named() -> None:
    refuses = frozenset({"seed", "user", "temperature"})
    assert encoded(user="me", dialect=Dialect(refuses=refuses)).adapted == ("user",)
