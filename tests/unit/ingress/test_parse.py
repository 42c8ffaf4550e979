"""What a chat completion request means, and what is refused.

Keeps C10, C12, C13, C20.
"""

from typing import Any

import pytest

from tests.cells import cells
from tests.unit.ingress.requests import HELLO, WEATHER, body, refusal, understood
from tollgate.core.content import Provenance, Reasoning, Refusal, Text, ToolCall
from tollgate.core.request import (
    AssistantMessage,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.core.signers import GEMINI
from tollgate.ingress.chat_completions.parse import parse
from tollgate.ingress.chat_completions.wire import request as wire
from tollgate.ingress.chat_completions.wire.messages import PARTS_MAX
from tollgate.ingress.shared.wire.request_fields import TOOLS_MAX


def test_the_smallest_request_is_understood() -> None:
    raw = body()
    call = parse(raw)
    assert call.request.model == "test/echo"
    assert call.request.messages == (UserMessage(content=(Text(text="hi"),)),)
    assert call.request.size_bytes == len(raw)
    assert call.request.capabilities == frozenset()
    assert (call.stream, call.usage_on, call.episode_id, call.ignored) == (
        False,
        None,
        None,
        (),
    )


def test_c10_every_role_is_understood() -> None:
    messages = [
        {"role": "system", "content": "be brief", "name": "ops"},
        {"role": "developer", "content": [{"type": "text", "text": "be kind"}]},
        {"role": "user", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]},
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {
                    "id": "call_0",
                    "type": "function",
                    "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "call_0", "content": "sunny"},
        {"role": "assistant", "content": "Sunny.", "name": "bot"},
    ]
    assert understood(messages=messages).request.messages == (
        SystemMessage(content=(Text(text="be brief"),), name="ops"),
        SystemMessage(content=(Text(text="be kind"),), role="developer"),
        UserMessage(content=(Text(text="a"), Text(text="b"))),
        AssistantMessage(
            content=(ToolCall(id="call_0", name="get_weather", arguments='{"city":"Paris"}'),)
        ),
        ToolMessage(call_id="call_0", content=(Text(text="sunny"),)),
        AssistantMessage(content=(Text(text="Sunny."),), name="bot"),
    )


def assistant(**fields: Any) -> tuple[object, ...]:
    message = understood(messages=[*HELLO, {"role": "assistant", **fields}]).request.messages[1]
    return message.content


def test_c10_reasoning_comes_back_with_its_signatures() -> None:
    details = [
        {"type": "reasoning.text", "index": 0, "text": "so", "format": "p", "signature": "s"},
        {"type": "reasoning.encrypted", "index": 1, "format": "p", "data": "x"},
    ]
    assert assistant(
        content="hello", reasoning="so", reasoning_content="so", reasoning_details=details
    ) == (
        Reasoning(text="so", provenance=Provenance(signer="p", signature="s")),
        Reasoning(text="", provenance=Provenance(signer="p", data="x")),
        Text(text="hello"),
    )


@pytest.mark.parametrize("field", ["reasoning", "reasoning_content"])
def test_c10_reasoning_without_details_comes_back_as_text(field: str) -> None:
    assert assistant(content="hello", **{field: "so"}) == (
        Reasoning(text="so"),
        Text(text="hello"),
    )


def test_c10_what_a_provider_attached_to_a_call_comes_back() -> None:
    call = {
        "id": "c",
        "type": "function",
        "function": {"name": "f", "arguments": "{}"},
        "extra_content": {"google": {"thought_signature": "t"}},
    }
    assert assistant(tool_calls=[call]) == (
        ToolCall(
            id="c",
            name="f",
            arguments="{}",
            provenance=Provenance(signer=GEMINI, signature="t"),
        ),
    )


def test_c10_a_refusal_comes_back_as_part_or_field() -> None:
    assert assistant(content=[{"type": "refusal", "refusal": "no"}]) == (Refusal(text="no"),)
    assert assistant(content=None, refusal="no") == (Refusal(text="no"),)


def test_c10_an_empty_text_beside_calls_is_no_text() -> None:
    call = {"id": "c", "function": {"name": "f", "arguments": "{}"}}
    assert assistant(content="", tool_calls=[call]) == (ToolCall(id="c", name="f", arguments="{}"),)


def test_c10_an_assistant_message_that_says_nothing_is_refused() -> None:
    error = refusal(body(messages=[*HELLO, {"role": "assistant", "content": None}]))
    assert error.param == "messages[1].content"


@pytest.mark.parametrize(
    ("given", "limit"),
    [
        ({}, None),
        ({"max_tokens": 5}, 5),
        ({"max_completion_tokens": 6}, 6),
        ({"max_tokens": 5, "max_completion_tokens": 6}, 5),
        ({"max_tokens": 7, "max_completion_tokens": 6}, 6),
        ({"max_tokens": None, "max_completion_tokens": 6}, 6),
    ],
)
def test_c12_of_both_limits_the_smaller_holds(given: dict[str, Any], limit: int | None) -> None:
    assert understood(**given).request.output_tokens_max == limit


def test_c13_sampling_is_understood() -> None:
    sampling = understood(
        temperature=1,
        top_p=0.5,
        top_k=3,
        min_p=0.1,
        presence_penalty=-2,
        frequency_penalty=2,
        repetition_penalty=1.1,
        seed=-7,
        stop=["a", "b"],
        logit_bias={"50256": -100},
    ).request.sampling
    assert (sampling.temperature, sampling.top_p, sampling.top_k) == (1.0, 0.5, 3)
    assert (sampling.min_p, sampling.repetition_penalty, sampling.seed) == (0.1, 1.1, -7)
    assert (sampling.presence_penalty, sampling.frequency_penalty) == (-2.0, 2.0)
    assert sampling.stop == ("a", "b")
    assert sampling.logit_bias == {"50256": -100.0}


def test_c13_stop_may_be_one_string() -> None:
    assert understood(stop="end").request.sampling.stop == ("end",)


@cells(
    ("field", "value", "param"),
    [
        ("temperature", 2.01, "temperature"),
        ("temperature", -0.01, "temperature"),
        ("temperature", "1", "temperature"),
        ("temperature", True, "temperature"),
        ("top_p", 1.01, "top_p"),
        ("top_k", -1, "top_k"),
        ("top_k", 1.5, "top_k"),
        ("min_p", 2, "min_p"),
        ("presence_penalty", 2.1, "presence_penalty"),
        ("frequency_penalty", -2.1, "frequency_penalty"),
        ("repetition_penalty", 0, "repetition_penalty"),
        ("seed", 2**63, "seed"),
        ("stop", ["a"] * 5, "stop"),
        ("stop", [1], "stop[0]"),
        ("stop", 1, "stop"),
        ("logit_bias", {"x": 1}, "logit_bias.x"),
        ("logit_bias", {"1": 101}, "logit_bias.1"),
        ("max_tokens", 0, "max_tokens"),
        ("max_completion_tokens", 2**31, "max_completion_tokens"),
        ("user", 5, "user"),
        ("metadata", {"a": 1}, "metadata.a"),
        ("metadata", {str(n): "v" for n in range(17)}, "metadata"),
        ("stream", "true", "stream"),
        ("stream_options", [], "stream_options"),
        ("usage_on", "start", "usage_on"),
        ("model", "", "model"),
        ("model", None, "model"),
        ("messages", [], "messages"),
        ("messages", "hi", "messages"),
        ("messages", ["hi"], "messages[0]"),
        ("messages", [{"role": "robot", "content": "hi"}], "messages[0].role"),
        ("messages", [{"content": "hi"}], "messages[0].role"),
        ("messages", [{"role": "function", "name": "f", "content": "hi"}], "messages[0].role"),
        ("messages", [{"role": "user"}], "messages[0].content"),
        ("messages", [{"role": "user", "content": None}], "messages[0].content"),
        ("messages", [{"role": "user", "content": []}], "messages[0].content"),
        ("messages", [{"role": "user", "content": ["hi"]}], "messages[0].content[0]"),
        ("messages", [{"role": "tool", "content": "x"}], "messages[0].tool_call_id"),
        ("n", 0, "n"),
        ("n", 9, "n"),
        ("logprobs", 1, "logprobs"),
        ("top_logprobs", 21, "top_logprobs"),
        ("top_logprobs", 2, "top_logprobs"),
        ("service_tier", "", "service_tier"),
        ("prompt_cache_key", 5, "prompt_cache_key"),
        ("parallel_tool_calls", 1, "parallel_tool_calls"),
        ("tools", {}, "tools"),
        ("tools", [{"type": "novelty", "novelty": {"name": "f"}}], "tools[0].type"),
        ("tools", [{"type": "function", "function": {}}], "tools[0].function.name"),
        ("tool_choice", "any", "tool_choice"),
        ("tool_choice", 5, "tool_choice"),
        ("tool_choice", {"type": "allowed_tools"}, "tool_choice.allowed_tools"),
        ("episode_id", "x", "episode_id"),
        ("episode_id", "8c8d5c7e-1b3f-4c1e-9b1a-1a2b3c4d5e6f", "episode_id"),
        ("modalities", ["text", "audio"], "modalities[1]"),
        ("modalities", "image", "modalities"),
    ],
)
def test_c13_a_value_out_of_place_is_refused_by_name(field: str, value: Any, param: str) -> None:
    error = refusal(body(**{field: value}))
    assert error.param == param
    assert error.message.startswith(f"{param} ")


@pytest.mark.parametrize(
    ("field", "value", "param"),
    [
        ("audio", {"voice": "alloy", "format": "wav"}, "audio"),
        ("functions", [{"name": "f"}], "functions"),
        ("function_call", "auto", "function_call"),
        ("moderation", {}, "moderation"),
    ],
)
def test_what_would_change_the_answer_and_is_not_served_is_refused(
    field: str, value: Any, param: str
) -> None:
    assert field in wire.Unserved.model_fields
    assert refusal(body(**{field: value})).param == param


def test_every_unserved_field_accepts_the_value_that_asks_for_nothing() -> None:
    nothing: dict[str, Any] = dict.fromkeys(wire.Unserved.model_fields)
    assert understood(**nothing).ignored == ()
    nothing |= {"plugins": [], "modalities": ["text"]}
    assert understood(**nothing).ignored == ()


def test_legacy_functions_are_refused_with_a_hint() -> None:
    assert (
        refusal(body(functions=[])).message == "functions is not supported. Send them as `tools`."
    )
    legacy = {"role": "assistant", "function_call": {"name": "f", "arguments": "{}"}}
    error = refusal(body(messages=[*HELLO, legacy]))
    assert error.param == "messages[1].function_call"
    assert "tool_calls" in error.message


def test_an_error_never_quotes_a_prompt() -> None:
    error = refusal(body(messages=[{"role": "user", "content": {"secret": "prompt"}}]))
    assert "prompt" not in error.message
    assert "prompt" not in repr(error.__cause__)
    assert "prompt" not in str(error.__cause__)


def test_c22_unknown_fields_are_named() -> None:
    call = understood(
        verbosity="low",
        stream_options={"include_usage": True, "include_obfuscation": False},
        messages=[
            {"role": "user", "content": [{"type": "text", "text": "a", "shade": {}}]},
            {"role": "user", "content": [{"type": "text", "text": "b", "shade": {}}]},
        ],
        tools=[WEATHER | {"eager": True}],
        absent=None,
    )
    assert call.ignored == ()
    assert call.request.native is not None
    assert call.request.native.unknown_names == (
        "verbosity",
        "stream_options.include_obfuscation",
        "messages[].content[].shade",
        "tools[].eager",
    )


def test_c22_names_of_unknown_fields_are_fit_for_a_header() -> None:
    fields: dict[str, Any] = {f"field_{n}": 1 for n in range(100)}
    native = understood(**{"a\r\nset-cookie: x": 1, "é" * 100: 1, **fields}).request.native
    assert native is not None
    names = native.unknown_names
    assert names[0] == "a__set-cookie:_x"
    assert names[1] == "_" * 64
    assert len(names) == 33
    assert names[-1] == "..."


def test_who_asks_and_how_it_is_told_is_understood() -> None:
    call = understood(
        user="u",
        metadata={"team": "a"},
        stream=True,
        stream_options={"include_usage": False},
        usage_on="finish",
        episode_id="017F22E2-79B0-7CC3-98C4-DC0C0C07398F",
    )
    assert call.request.user == "u"
    assert call.request.metadata == {"team": "a"}
    assert (call.stream, call.usage_on) == (True, "finish")
    assert call.episode_id == "017F22E2-79B0-7CC3-98C4-DC0C0C07398F"


def test_an_episode_id_may_bear_its_older_name() -> None:
    episode_id = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
    assert understood(**{"tensorzero::episode_id": episode_id}).episode_id == episode_id


@pytest.mark.parametrize(
    ("field", "entry", "entries_max"),
    [("messages", HELLO[0], wire.MESSAGES_MAX), ("tools", WEATHER, TOOLS_MAX)],
)
def test_lists_have_a_limit(field: str, entry: dict[str, Any], entries_max: int) -> None:
    understood(**{field: [entry] * entries_max})
    error = refusal(body(**{field: [entry] * (entries_max + 1)}))
    assert error.param == field
    assert error.message == f"{field} must have at most {entries_max} entries."


def test_parts_of_a_message_have_a_limit() -> None:
    parts = [{"type": "text", "text": "a"}] * (PARTS_MAX + 1)
    assert refusal(body(messages=[{"role": "user", "content": parts}])).param == (
        "messages[0].content"
    )
