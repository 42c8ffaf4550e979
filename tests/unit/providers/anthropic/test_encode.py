"""Requests for Claude: carriers, limits, sampling, tools and the form of the answer.

Keeps C13, C16, C18, C55.
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
from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.core.request import (
    JsonOutput,
    ReasoningOptions,
    Sampling,
    SchemaOutput,
    Tool,
    ToolChoice,
)
from tollgate.providers.ports.base import Guardrail
from tollgate.providers.ports.dialect import ClaudeDialect, Dialect
from tollgate.providers.shared.emulation import OUTPUT_TOOL, Wrapping

REQUIRED = ToolChoice(mode="required")
PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "tags": {"type": "array", "items": {"enum": [1]}}},
    "required": ["name"],
}


def test_anthropic_names_the_model_and_its_pinned_version() -> None:
    wire = encoded(user("Hi"))
    assert wire.path == "/messages"
    assert wire.headers == {"anthropic-version": "2023-06-01"}
    assert wire.body == {
        "model": "m-1",
        "stream": True,
        "max_tokens": 64_000,
        "messages": [{"role": "user", "content": [{"type": "text", "text": "Hi"}]}],
    }


def test_vertex_has_model_and_place_in_the_path_and_the_version_in_the_body() -> None:
    dialect = OLDER.model_copy(update={"claude_carrier": "vertex"})
    place = {"project": "p-1", "location": "us-east5"}
    wire = encoded(user("Hi"), at=target(dialect, upstream_model="m-1@20250219", **place))
    assert wire.path == (
        "/v1/projects/p-1/locations/us-east5/publishers/anthropic/models/m-1@20250219:streamRawPredict"
    )
    assert wire.headers == {}
    assert wire.body["anthropic_version"] == "vertex-2023-10-16"
    assert wire.body["stream"] is True
    assert "model" not in wire.body


def test_bedrock_says_in_the_path_that_it_streams() -> None:
    dialect = OLDER.model_copy(update={"claude_carrier": "bedrock"})
    wire = encoded(user("Hi"), at=target(dialect, upstream_model="acme.m-v1:0"))
    assert wire.path == "/model/acme.m-v1%3A0/invoke-with-response-stream"
    assert wire.body["anthropic_version"] == "bedrock-2023-05-31"
    assert not {"model", "stream"} & set(wire.body)


@pytest.mark.parametrize(
    ("asked", "limit", "sent"),
    [(None, 8_192, 8_192), (100, 8_192, 100), (9_999, 8_192, 8_192), (None, None, 4_096)],
)
def test_q37_the_mandatory_limit_is_the_callers_or_the_models(
    asked: int | None, limit: int | None, sent: int
) -> None:
    at = target(output_tokens_max=limit)
    assert body(user("Hi"), output_tokens_max=asked, at=at)["max_tokens"] == sent


def sampled(dialect: Dialect, sampling: Sampling, **fields: Any) -> tuple[Any, tuple[str, ...]]:
    wire = encoded(user("?"), sampling=sampling, at=target(dialect), **fields)
    names = ("temperature", "top_p", "top_k", "stop_sequences")
    return {name: wire.body[name] for name in names if name in wire.body}, wire.adapted


@pytest.mark.parametrize(
    ("sampling", "sent", "adapted"),
    [
        (Sampling(temperature=0.5, top_k=3), {"temperature": 0.5, "top_k": 3}, ()),
        (Sampling(top_p=0.9), {"top_p": 0.9}, ()),
        (Sampling(top_k=0), {}, ()),
        (Sampling(temperature=1.7), {"temperature": 1.0}, ("temperature",)),
        (Sampling(temperature=0.5, top_p=0.9), {"temperature": 0.5}, ("top_p",)),
        (Sampling(temperature=0.5, top_p=1.0), {"temperature": 0.5}, ()),
        (Sampling(stop=("END", " ")), {"stop_sequences": ["END"]}, ("stop",)),
    ],
)
def test_q38_older_models_take_temperature_or_top_p(
    sampling: Sampling, sent: Any, adapted: tuple[str, ...]
) -> None:
    assert sampled(OLDER, sampling) == (sent, adapted)


def test_q38_a_model_that_takes_both_gets_both() -> None:
    claude = ClaudeDialect(thinking_off="absent", temperature_and_top_p=True)
    both = OLDER.model_copy(update={"claude": claude})
    sampling = Sampling(temperature=0.5, top_p=0.9)
    assert sampled(both, sampling) == ({"temperature": 0.5, "top_p": 0.9}, ())


def test_q38_newer_models_take_none_and_a_default_that_is_left_out_is_no_change() -> None:
    strict = NEWER.model_copy(update={"reasoning": None})
    every = Sampling(temperature=0.0, top_p=0.9, top_k=3)
    assert sampled(strict, every) == ({}, ("temperature", "top_p", "top_k"))
    assert sampled(strict, Sampling(temperature=1.0, top_p=1.0)) == ({}, ())


def test_q38_thinking_wants_its_own_temperature() -> None:
    asked = ReasoningOptions(effort="low")
    sampling = Sampling(temperature=0.2, top_k=3)
    assert sampled(OLDER, sampling, reasoning=asked) == ({}, ("temperature", "top_k"))


@pytest.mark.parametrize(
    ("choice", "parallel", "expected"),
    [
        (None, None, None),
        (None, True, None),
        (None, False, {"type": "auto", "disable_parallel_tool_use": True}),
        (ToolChoice(mode="auto"), None, {"type": "auto"}),
        (ToolChoice(mode="none"), False, {"type": "none"}),
        (REQUIRED, False, {"type": "any", "disable_parallel_tool_use": True}),
        (ToolChoice(mode="named", name="weather"), None, {"type": "tool", "name": "weather"}),
    ],
)
def test_q17_q18_tool_choice_and_parallel_calls(
    choice: ToolChoice | None, parallel: bool | None, expected: Any
) -> None:
    sent = body(user("?"), tools=(WEATHER,), tool_choice=choice, parallel_tool_calls=parallel)
    assert sent["tools"] == [
        {"name": "weather", "description": "The weather.", "input_schema": {"type": "object"}}
    ]
    assert sent.get("tool_choice") == expected


def test_q5_tool_history_without_tools_names_them_and_offers_none() -> None:
    sent = body(user("?"), assistant(call("a", "now")), result("a", "noon"))
    assert sent["tools"] == [{"name": "now", "input_schema": {"type": "object"}}]
    assert sent["tool_choice"] == {"type": "none"}


def test_q26_a_strict_tool_is_closed_and_one_that_cannot_be_is_told() -> None:
    strict = encoded(user("?"), tools=(Tool(name="add", parameters=PERSON, strict=True),))
    tool: Any = strict.body["tools"]
    assert tool[0]["strict"] is True
    assert tool[0]["input_schema"]["additionalProperties"] is False
    assert strict.adapted == ()
    loose = encoded(user("?"), tools=(Tool(name="add", parameters=PERSON),))
    assert loose.body["tools"] == [{"name": "add", "input_schema": PERSON}]
    map_of_anything = Tool(name="add", parameters={"type": "object"}, strict=True)
    told = encoded(user("?"), tools=(map_of_anything,))
    assert told.adapted == ("tools.strict",)
    assert told.body["tools"] == [{"name": "add", "input_schema": {"type": "object"}}]


def test_q25_a_schema_is_native_beside_the_callers_tools() -> None:
    wanted = SchemaOutput(name="person", schema={"$schema": "x", **PERSON})
    wire = encoded(user("?"), output_format=wanted, tools=(WEATHER,))
    tools: Any = wire.body["tools"]
    assert wire.body["output_config"] == {
        "format": {"type": "json_schema", "schema": {**PERSON, "additionalProperties": False}}
    }
    assert [tool["name"] for tool in tools] == ["weather"]
    assert wire.wrapping == Wrapping()


def test_q25_effort_and_schema_share_one_field() -> None:
    wanted = SchemaOutput(name="person", schema=PERSON)
    sent = body(
        user("?"), output_format=wanted, reasoning=ReasoningOptions(effort="low"), at=target(NEWER)
    )
    assert set(sent["output_config"]) == {"effort", "format"}


@pytest.mark.parametrize(
    ("wanted", "fields"),
    [
        (JsonOutput(), {}),
        (SchemaOutput(name="x", schema={"type": "object"}), {}),
        (SchemaOutput(name="x", schema={"type": "integer", "minimum": 3}), {}),
        (SchemaOutput(name="x", schema=PERSON), {"at": target(supports=frozenset())}),
    ],
)
def test_c16_what_cannot_be_enforced_is_a_forced_call(wanted: Any, fields: Any) -> None:
    wire = encoded(user("?"), output_format=wanted, **fields)
    assert wire.body["tool_choice"] == {"type": "tool", "name": OUTPUT_TOOL}
    assert wire.wrapping == Wrapping(tool=True)
    assert "output_config" not in wire.body


def test_c16_a_forced_call_of_a_model_that_always_thinks_is_asked_for_and_that_is_told() -> None:
    wire = encoded(user("?"), output_format=JsonOutput(), at=target(NEWER))
    assert wire.body["tool_choice"] == {"type": "auto"}
    assert wire.adapted == ("response_format",)


def test_c16_a_call_that_the_caller_forces_comes_before_the_form_of_an_answer() -> None:
    fields: dict[str, Any] = {"output_format": JsonOutput(), "tools": (WEATHER,)}
    wire = encoded(user("?"), tool_choice=REQUIRED, **fields)
    assert wire.body["tool_choice"] == {"type": "any"}
    assert wire.wrapping == Wrapping()
    newer = encoded(user("?"), tool_choice=REQUIRED, at=target(NEWER), **fields)
    assert newer.adapted == ("tool_choice",)


def test_c18_guided_json_is_a_schema_and_a_choice_is_taken_out_of_its_object() -> None:
    wire = encoded(user("?"), guided={"guided_choice": ["yes", "no"]})
    assert wire.wrapping == Wrapping(choice=True)
    assert "output_config" in wire.body


@pytest.mark.parametrize(
    ("carrier", "tier", "sent", "adapted"),
    [
        ("anthropic", "auto", "auto", ()),
        ("anthropic", "default", "standard_only", ()),
        ("anthropic", "flex", None, ("service_tier",)),
        ("bedrock", "auto", None, ()),
        ("bedrock", "default", None, ("service_tier",)),
    ],
)
def test_service_tiers_are_anthropics_own(
    carrier: Any, tier: str, sent: str | None, adapted: tuple[str, ...]
) -> None:
    dialect = OLDER.model_copy(update={"claude_carrier": carrier})
    wire = encoded(user("?"), service_tier=tier, at=target(dialect))
    assert wire.body.get("service_tier") == sent
    assert wire.adapted == adapted


def test_c13_what_a_row_refuses_is_left_out_and_named() -> None:
    dialect = OLDER.model_copy(update={"refuses": ("service_tier", "user")})
    wire = encoded(user("?"), service_tier="default", user="u-1", at=target(dialect))
    assert not {"service_tier", "metadata"} & set(wire.body)
    assert wire.adapted == ("service_tier", "user")


def test_the_user_is_told_unless_the_name_is_too_long() -> None:
    assert body(user("?"), user="u-1")["metadata"] == {"user_id": "u-1"}
    long = encoded(user("?"), user="u" * 257)
    assert "metadata" not in long.body
    assert long.adapted == ("user",)


def test_c13_q40_what_the_messages_api_has_no_field_for_is_named() -> None:
    wire = encoded(
        user("?"),
        prompt_cache_key="k",
        sampling=Sampling(
            min_p=0.1,
            presence_penalty=1,
            frequency_penalty=1,
            repetition_penalty=1,
            seed=7,
            logit_bias={"1": 2},
            logprobs=True,
            top_logprobs=2,
        ),
    )
    assert wire.adapted == (
        "min_p",
        "presence_penalty",
        "frequency_penalty",
        "repetition_penalty",
        "seed",
        "logit_bias",
        "logprobs",
        "top_logprobs",
        "prompt_cache_key",
    )


def test_c55_a_guardrail_is_never_left_out() -> None:
    with pytest.raises(UpstreamError) as raised:
        encoded(user("?"), at=target(guardrail=Guardrail(id="g-1", version="1")))
    assert raised.value.code is ErrorCode.PROVIDER_UNAVAILABLE
