"""Formats, reasoning, choices and paths of chat completions, in every dialect.

Keeps C13, C14, C16, C17, C18.
"""

from typing import Any

import pytest

from tollgate.core.content import Text
from tollgate.core.errors import RequestError
from tollgate.core.request import (
    GenerationRequest,
    JsonOutput,
    ReasoningOptions,
    Sampling,
    SchemaOutput,
    Tool,
    ToolChoice,
    UserMessage,
)
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import codec_of
from tollgate.providers.shared.emulation import NOT_WRAPPED, OUTPUT_TOOL, Wrapping

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}
OUTPUT = SchemaOutput(name="city", schema=SCHEMA)


def encoded(*supports: Any, dialect: dict[str, Any] | None = None, **fields: Any) -> WireRequest:
    target = Target(
        provider="acme",
        model="acme/m",
        upstream_model="m/1",
        dialect=Dialect(**(dialect or {})),
        supports=frozenset(supports),
    )
    messages = (UserMessage(content=(Text(text="Hi"),)),)
    return codec_of("openai_chat").encode(
        GenerationRequest(model="acme/m", messages=messages, **fields), target
    )


def test_c16_a_schema_is_native_where_server_and_model_enforce_it() -> None:
    wire = encoded("structured_output", output_format=OUTPUT)
    assert wire.body["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "city", "schema": SCHEMA},
    }
    assert wire.wrapping == NOT_WRAPPED


def test_c16_q26_a_strict_schema_is_closed() -> None:
    strict = SchemaOutput(name="city", schema=SCHEMA, strict=True, description="A city.")
    form: Any = encoded("structured_output", output_format=strict).body["response_format"]
    assert form["json_schema"] == {
        "name": "city",
        "schema": {**SCHEMA, "additionalProperties": False},
        "strict": True,
        "description": "A city.",
    }


@pytest.mark.parametrize(
    ("supports", "dialect"),
    [
        (["tools"], {}),
        (["structured_output"], {"output_format": "json_object"}),
        (["structured_output"], {"output_format": None}),
    ],
)
def test_c16_q25_a_schema_is_emulated_by_a_forced_tool_elsewhere(
    supports: Any, dialect: dict[str, Any]
) -> None:
    wire = encoded(*supports, dialect=dialect, output_format=OUTPUT)
    tools: Any = wire.body["tools"]
    assert "response_format" not in wire.body
    assert tools[0]["function"]["name"] == OUTPUT_TOOL
    assert wire.body["tool_choice"] == {"type": "function", "function": {"name": OUTPUT_TOOL}}
    assert wire.wrapping == Wrapping(tool=True)


def test_c16_json_of_any_shape_is_native_where_the_server_has_it() -> None:
    native = encoded(output_format=JsonOutput(), dialect={"output_format": "json_object"})
    assert native.body["response_format"] == {"type": "json_object"}
    emulated = encoded(output_format=JsonOutput(), dialect={"output_format": None})
    assert emulated.wrapping == Wrapping(tool=True)


GUIDED = {"guided_regex": "a+", "chat_template_kwargs": {"enable_thinking": False}}


def test_c18_vllm_type_servers_get_guided_fields_unchanged() -> None:
    wire = encoded(guided=GUIDED, dialect={"guided": True})
    assert {name: wire.body[name] for name in GUIDED} == GUIDED
    assert wire.wrapping == NOT_WRAPPED


def test_c18_elsewhere_choices_become_a_schema_and_the_rest_is_refused() -> None:
    wire = encoded("structured_output", guided={"guided_choice": ["a", "b"]})
    assert wire.wrapping == Wrapping(choice=True)
    assert not any(name.startswith("guided") for name in wire.body)
    with pytest.raises(RequestError) as raised:
        encoded(guided=GUIDED)
    assert raised.value.param == "guided_regex"


LOW = ReasoningOptions(effort="low")
BUDGET = ReasoningOptions(tokens_max=5_000)
NONE = ReasoningOptions(effort="none")
ON = ReasoningOptions(enabled=True)


@pytest.mark.parametrize(
    ("style", "wanted", "fields", "adapted"),
    [
        ("effort", LOW, {"reasoning_effort": "low"}, ()),
        ("effort", ReasoningOptions(effort="max"), {"reasoning_effort": "high"}, ("reasoning",)),
        ("effort", BUDGET, {"reasoning_effort": "low"}, ("reasoning",)),
        ("effort", ON, {}, ()),
        ("effort", NONE, {"reasoning_effort": "low"}, ("reasoning",)),
        ("object", LOW, {"reasoning": {"effort": "low"}}, ()),
        ("object", BUDGET, {"reasoning": {"max_tokens": 5_000}}, ()),
        ("object", ON, {"reasoning": {"enabled": True}}, ()),
        ("object", NONE, {"reasoning": {"enabled": False}}, ()),
        ("thinking", LOW, {"thinking": {"type": "enabled"}, "reasoning_effort": "low"}, ()),
        ("thinking", NONE, {"thinking": {"type": "disabled"}}, ()),
        (None, LOW, {}, ("reasoning",)),
        ("effort", ReasoningOptions(exclude=True), {}, ()),
        ("effort", None, {}, ()),
    ],
)
def test_c17_reasoning_is_asked_for_in_the_words_of_the_dialect(
    style: Any, wanted: ReasoningOptions | None, fields: Any, adapted: Any
) -> None:
    wire = encoded("reasoning", dialect={"reasoning": style}, reasoning=wanted)
    named = {"reasoning", "reasoning_effort", "thinking"}
    assert {name: wire.body[name] for name in named & set(wire.body)} == fields
    assert wire.adapted == adapted


def test_c17_a_model_that_cannot_think_is_not_asked_to() -> None:
    wire = encoded(dialect={"reasoning": "effort"}, reasoning=LOW)
    assert "reasoning_effort" not in wire.body
    assert wire.adapted == ("reasoning",)
    assert encoded(dialect={"reasoning": "effort"}, reasoning=NONE).adapted == ()


def test_c14_n_goes_to_servers_that_have_it() -> None:
    assert encoded(choices=3, dialect={"native_choices": True}).body["n"] == 3
    assert "n" not in encoded(choices=1, dialect={"native_choices": True}).body
    assert "n" not in encoded(choices=3).body


def test_q17_a_forced_call_has_the_word_of_the_dialect() -> None:
    forced = {"tools": (Tool(name="now"),), "tool_choice": ToolChoice(mode="required")}
    assert encoded(**forced).body["tool_choice"] == "required"
    assert encoded(**forced, dialect={"any_tool": "any"}).body["tool_choice"] == "any"


def test_c13_log_probabilities_and_tiers_are_asked_for_or_named() -> None:
    wanted: dict[str, Any] = {
        "sampling": Sampling(logprobs=True, top_logprobs=3),
        "service_tier": "flex",
        "prompt_cache_key": "k",
    }
    sent = encoded(**wanted, dialect={"refuses": ()})
    assert (sent.body["logprobs"], sent.body["top_logprobs"]) == (True, 3)
    assert (sent.body["service_tier"], sent.body["prompt_cache_key"]) == ("flex", "k")
    assert sent.adapted == ()
    refused = encoded(**wanted)
    assert refused.adapted == ("prompt_cache_key", "service_tier")


def test_azures_path_is_row_data_that_names_the_deployment() -> None:
    path = "/openai/deployments/{model}/chat/completions?api-version=2024-10-21"
    wire = encoded(dialect={"path": path})
    assert wire.path == "/openai/deployments/m%2F1/chat/completions?api-version=2024-10-21"


@pytest.mark.parametrize("path", ["chat", "/a b", "/a#b", "https://evil.example", "/a?b c"])
def test_a_path_is_a_path(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        Dialect(path=path)


def test_q16_clients_schemas_go_on_as_they_are() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Now",
        "type": "object",
        "properties": {"at": {"$ref": "#/$defs/at"}, "n": {"const": 12345678901234567890}},
        "$defs": {"at": {"type": ["string", "null"]}},
    }
    tools: Any = encoded(tools=(Tool(name="now", parameters=schema),)).body["tools"]
    assert tools[0]["function"]["parameters"] == schema


def test_q18_parallel_calls_can_be_forbidden_only_where_there_are_tools() -> None:
    assert (
        encoded(tools=(Tool(name="now"),), parallel_tool_calls=False).body["parallel_tool_calls"]
        is False
    )
    assert "parallel_tool_calls" not in encoded(parallel_tool_calls=False).body


def test_q38_a_model_that_reasons_states_what_it_refuses_at_its_endpoint() -> None:
    refuses = ("temperature", "stop", "top_p")
    sampling = Sampling(temperature=0.5, stop=("END",))
    wire = encoded(dialect={"refuses": refuses}, sampling=sampling)
    assert wire.adapted == ("temperature", "stop")
