"""Requests for streamGenerateContent: tools, answers in a form, thinking, parameters.

Keeps C12, C13, C15, C16, C17, C18.
"""

from typing import Any

import pytest

from tests.unit.providers.gemini.requests import (
    ANSWER,
    BUDGET,
    LEVELS,
    STOPPABLE,
    WEATHER,
    config,
    encoded,
    target,
)
from tollgate.core.errors import RequestError
from tollgate.core.request import (
    JsonOutput,
    ReasoningOptions,
    Sampling,
    Tool,
    ToolChoice,
)
from tollgate.providers.ports.base import Target
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.shared.emulation import CHOICE, OUTPUT_TOOL, Wrapping


def test_ai_studio_has_the_model_in_the_path_and_streams_events() -> None:
    wire = encoded(to=Target(provider="g", model="g/m", upstream_model="tuned/m 1"))
    assert wire.path == "/v1beta/models/tuned%2Fm%201:streamGenerateContent?alt=sse"


def test_vertex_has_project_and_location_in_the_path() -> None:
    assert encoded(to=target(BUDGET, project="acme-1", location="europe-west4")).path == (
        "/v1/projects/acme-1/locations/europe-west4/publishers/google/models/m"
        ":streamGenerateContent?alt=sse"
    )


def test_q16_tools_keep_their_schema_but_for_its_name() -> None:
    declared = encoded(tools=(WEATHER, Tool(name="now", description=""))).body["tools"]
    assert declared == [
        {
            "functionDeclarations": [
                {
                    "name": "weather",
                    "description": "The weather.",
                    "parametersJsonSchema": {"title": "W", "$defs": {}, "type": "object"},
                },
                {"name": "now"},
            ]
        }
    ]


@pytest.mark.parametrize(
    ("choice", "calling"),
    [
        (ToolChoice(mode="auto"), {"mode": "AUTO"}),
        (ToolChoice(mode="none"), {"mode": "NONE"}),
        (ToolChoice(mode="required"), {"mode": "ANY"}),
        (
            ToolChoice(mode="named", name="weather"),
            {"mode": "ANY", "allowedFunctionNames": ["weather"]},
        ),
    ],
)
def test_q17_every_tool_choice_has_a_mode(choice: ToolChoice, calling: object) -> None:
    body = encoded(tools=(WEATHER,), tool_choice=choice).body
    assert body["toolConfig"] == {"functionCallingConfig": calling}


def test_c15_a_choice_without_tools_is_not_sent() -> None:
    assert set(encoded(tool_choice=ToolChoice(mode="none")).body) == {"contents"}


def test_c16_a_json_answer_is_native() -> None:
    assert config(output_format=JsonOutput()) == {"responseMimeType": "application/json"}
    assert config(output_format=ANSWER) == {
        "responseMimeType": "application/json",
        "responseJsonSchema": {"title": "W", "$defs": {}, "type": "object"},
    }
    body: Any = encoded(to=target(LEVELS), output_format=ANSWER, tools=(WEATHER,)).body
    assert "responseJsonSchema" in body["generationConfig"]
    assert len(body["tools"][0]["functionDeclarations"]) == 1


@pytest.mark.parametrize("choice", [None, ToolChoice(mode="auto")])
@pytest.mark.parametrize(
    ("answer", "schema"),
    [(JsonOutput(), {"type": "object"}), (ANSWER, {"title": "W", "$defs": {}, "type": "object"})],
)
def test_q25_a_model_that_refuses_both_must_call_a_tool_or_the_answer(
    answer: Any, schema: object, choice: ToolChoice | None
) -> None:
    wire = encoded(tools=(WEATHER,), tool_choice=choice, output_format=answer)
    assert wire.wrapping == Wrapping(tool=True)
    body: Any = wire.body
    weather, final = body["tools"][0]["functionDeclarations"]
    assert weather["name"] == "weather"
    assert (final["name"], final["parametersJsonSchema"]) == (OUTPUT_TOOL, schema)
    assert body["toolConfig"] == {"functionCallingConfig": {"mode": "ANY"}}
    assert "generationConfig" not in body


def test_q25_a_forced_call_leaves_no_answer_and_a_forbidden_one_no_tools() -> None:
    forced: Any = encoded(
        tools=(WEATHER,), tool_choice=ToolChoice(mode="required"), output_format=ANSWER
    ).body
    assert OUTPUT_TOOL not in str(forced)
    assert "generationConfig" not in forced
    forbidden = encoded(
        tools=(WEATHER,), tool_choice=ToolChoice(mode="none"), output_format=ANSWER
    ).body
    assert "tools" not in forbidden
    assert "generationConfig" in forbidden


@pytest.mark.parametrize(
    ("dialect", "options", "thinking", "departs"),
    [
        (BUDGET, {"effort": "minimal"}, {"thinkingBudget": 1024}, False),
        (BUDGET, {"effort": "max"}, {"thinkingBudget": 32768}, False),
        (BUDGET, {"effort": "none"}, {"thinkingBudget": 128}, True),
        (BUDGET, {"tokens_max": 2000}, {"thinkingBudget": 2000}, False),
        (BUDGET, {"tokens_max": 1}, {"thinkingBudget": 128}, True),
        (BUDGET, {"enabled": True}, {}, False),
        (BUDGET, {"effort": "minimal", "exclude": True}, {"thinkingBudget": 1024}, False),
        (STOPPABLE, {"effort": "none"}, {"thinkingBudget": 0}, False),
        (STOPPABLE, {"enabled": False}, {"thinkingBudget": 0}, False),
        (STOPPABLE, {"effort": "xhigh"}, {"thinkingBudget": 24576}, False),
        (LEVELS, {"effort": "low"}, {"thinkingLevel": "LOW"}, False),
        (LEVELS, {"effort": "medium"}, {"thinkingLevel": "LOW"}, True),
        (LEVELS, {"effort": "minimal"}, {"thinkingLevel": "LOW"}, True),
        (LEVELS, {"effort": "max"}, {"thinkingLevel": "HIGH"}, True),
        (LEVELS, {"effort": "none"}, {"thinkingLevel": "LOW"}, True),
        (LEVELS, {"tokens_max": 500}, {"thinkingLevel": "LOW"}, True),
        (LEVELS, {"tokens_max": 99999}, {"thinkingLevel": "HIGH"}, True),
        (LEVELS, {"enabled": True}, {}, False),
        (Dialect(), {"effort": "low"}, None, True),
        (Dialect(), {"effort": "none"}, None, False),
    ],
)
def test_c17_effort_is_told_as_the_model_takes_it(
    dialect: Dialect, options: Any, thinking: dict[str, Any] | None, departs: bool
) -> None:
    reasoning = ReasoningOptions(**options)
    stops = options.get("effort") == "none" or options.get("enabled") is False
    if thinking is not None and not stops and not reasoning.exclude:
        thinking = {**thinking, "includeThoughts": True}
    assert config(target(dialect), reasoning=reasoning).get("thinkingConfig") == (thinking or None)
    assert ("reasoning" in encoded(to=target(dialect), reasoning=reasoning).adapted) is departs


def test_c12_c13_parameters_have_their_fields_and_output_is_capped() -> None:
    sampling = Sampling(
        temperature=2.0,
        top_p=0.5,
        top_k=5,
        presence_penalty=-1.0,
        frequency_penalty=1.0,
        seed=7,
        stop=("", "END"),
        logprobs=True,
        top_logprobs=3,
    )
    assert config(output_tokens_max=9999, sampling=sampling) == {
        "maxOutputTokens": 4096,
        "temperature": 2.0,
        "topP": 0.5,
        "topK": 5,
        "presencePenalty": -1.0,
        "frequencyPenalty": 1.0,
        "seed": 7,
        "stopSequences": ["END"],
        "responseLogprobs": True,
        "logprobs": 3,
    }
    assert config(sampling=Sampling(top_k=0, top_logprobs=3)) == {}


def test_c13_what_gemini_has_no_field_for_is_named() -> None:
    wire = encoded(
        sampling=Sampling(seed=2**40, min_p=0.1, repetition_penalty=1.1, logit_bias={"1": 1.0}),
        tools=(Tool(name="f", strict=True),),
        parallel_tool_calls=False,
        prompt_cache_key="k",
        service_tier="flex",
        user="u",
    )
    assert wire.adapted == (
        "seed",
        "min_p",
        "repetition_penalty",
        "logit_bias",
        "parallel_tool_calls",
        "prompt_cache_key",
        "service_tier",
        "user",
        "tools.strict",
    )
    assert "generationConfig" not in wire.body


def test_c13_what_a_row_refuses_is_left_out_and_named() -> None:
    strict = target(BUDGET.model_copy(update={"refuses": ("temperature", "top_k", "top_p")}))
    sampling = Sampling(temperature=0.5, top_p=0.9, top_k=3, seed=1)
    wire = encoded(to=strict, sampling=sampling)
    sent = config(strict, sampling=sampling)
    assert sent.keys() & {"temperature", "topP", "topK", "seed"} == {"topK", "seed"}
    assert wire.adapted == ("temperature", "top_p")


def test_c18_guided_decoding_is_a_schema_where_it_can_be_and_else_the_callers_error() -> None:
    choice = encoded(guided={"guided_choice": ["a", "b"]})
    assert choice.wrapping == Wrapping(choice=True)
    schema: Any = choice.body["generationConfig"]
    assert schema["responseJsonSchema"]["properties"] == {CHOICE: {"enum": ["a", "b"]}}
    with pytest.raises(RequestError) as raised:
        encoded(guided={"guided_regex": "a+"})
    assert raised.value.param == "guided_regex"


@pytest.mark.parametrize(("tier", "field"), [("flex", "flex"), ("default", "standard")])
def test_c87_a_priced_tier_is_asked_for_at_ai_studio_alone(tier: str, field: str) -> None:
    priced = BUDGET.model_copy(update={"refuses": ()})
    wire = encoded(to=target(priced), service_tier=tier)
    assert (wire.body["serviceTier"], wire.adapted) == (field, ())
    vertex = encoded(to=target(priced, project="acme-1", location="eu"), service_tier=tier)
    assert "serviceTier" not in vertex.body
    assert vertex.adapted == ("service_tier",)
