"""C14, C16-C18: how many answers, in what form, after how much thinking.

Keeps C10, C13, C14, C16, C17, C18.
"""

from typing import Any

import pytest

from tests.unit.ingress.requests import HELLO, body, refusal, understood
from tollgate.core.content import Provenance, Reasoning
from tollgate.core.request import JsonOutput, ReasoningOptions, SchemaOutput
from tollgate.core.signers import CLAUDE, GEMINI

SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}}


@pytest.mark.parametrize(
    ("stated", "meaning"),
    [
        ({"type": "text"}, None),
        ({"type": "json_object"}, JsonOutput()),
        (
            {"type": "json_schema", "json_schema": {"name": "City", "schema": SCHEMA}},
            SchemaOutput(name="City", schema=SCHEMA),
        ),
        (
            {
                "type": "json_schema",
                "json_schema": {
                    "name": "City",
                    "schema": SCHEMA,
                    "description": "a city",
                    "strict": True,
                },
            },
            SchemaOutput(name="City", schema=SCHEMA, description="a city", strict=True),
        ),
        (
            {"type": "json_schema", "json_schema": {"schema": SCHEMA}},
            SchemaOutput(name="answer", schema=SCHEMA),
        ),
        (
            {"type": "json_schema", "json_schema": SCHEMA},
            SchemaOutput(name="answer", schema=SCHEMA),
        ),
        ({"type": "json_schema", "schema": SCHEMA}, SchemaOutput(name="answer", schema=SCHEMA)),
        ({"type": "json_object", "schema": SCHEMA}, SchemaOutput(name="answer", schema=SCHEMA)),
    ],
)
def test_c16_response_formats_are_understood(stated: dict[str, Any], meaning: object) -> None:
    call = understood(response_format=stated)
    assert call.request.output_format == meaning
    assert call.ignored == ()


@pytest.mark.parametrize(
    ("stated", "param"),
    [
        ("json_object", "response_format"),
        ({"type": "grammar"}, "response_format.type"),
        ({"type": "json_schema"}, "response_format.json_schema"),
        ({"type": "json_schema", "json_schema": {}}, "response_format.json_schema.schema"),
        (
            {"type": "json_schema", "json_schema": {"schema": "x"}},
            "response_format.json_schema.schema",
        ),
    ],
)
def test_c16_a_format_without_a_schema_is_refused(stated: Any, param: str) -> None:
    assert refusal(body(response_format=stated)).param == param


@pytest.mark.parametrize(
    ("fields", "meaning"),
    [
        ({"reasoning_effort": "xhigh"}, ReasoningOptions(effort="xhigh")),
        ({"reasoning": {"effort": "low"}}, ReasoningOptions(effort="low")),
        ({"reasoning": {"max_tokens": 2000}}, ReasoningOptions(tokens_max=2000)),
        ({"reasoning": {"enabled": True}}, ReasoningOptions(enabled=True)),
        ({"reasoning": {"enabled": False}}, ReasoningOptions(enabled=False)),
        ({"reasoning": {"exclude": True}}, ReasoningOptions(exclude=True)),
        ({"include_reasoning": False}, ReasoningOptions(exclude=True)),
        ({"include_reasoning": True}, None),
        (
            {"include_reasoning": False, "reasoning_effort": "low"},
            ReasoningOptions(effort="low", exclude=True),
        ),
        (
            {"include_reasoning": False, "reasoning": {"exclude": True, "enabled": True}},
            ReasoningOptions(enabled=True, exclude=True),
        ),
        (
            {"include_reasoning": True, "reasoning": {"max_tokens": 9, "exclude": False}},
            ReasoningOptions(tokens_max=9),
        ),
        ({"reasoning": {}}, None),
        (
            {"reasoning_effort": "low", "reasoning": {"effort": "low", "exclude": True}},
            ReasoningOptions(effort="low", exclude=True),
        ),
        (
            {"reasoning": {"effort": "none", "enabled": False}},
            ReasoningOptions(effort="none", enabled=False),
        ),
    ],
)
def test_c17_thinking_is_understood_in_both_spellings(
    fields: dict[str, Any], meaning: ReasoningOptions | None
) -> None:
    assert understood(**fields).request.reasoning == meaning


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"reasoning_effort": "huge"}, "reasoning_effort"),
        ({"reasoning_effort": "low", "reasoning": {"effort": "high"}}, "reasoning.effort"),
        ({"reasoning_effort": "low", "reasoning": {"max_tokens": 9}}, "reasoning.max_tokens"),
        ({"reasoning": {"effort": "low", "max_tokens": 9}}, "reasoning.max_tokens"),
        ({"include_reasoning": True, "reasoning": {"exclude": True}}, "include_reasoning"),
        ({"include_reasoning": False, "reasoning": {"exclude": False}}, "include_reasoning"),
        ({"reasoning": {"effort": "low", "enabled": False}}, "reasoning.enabled"),
        ({"reasoning": {"max_tokens": 9, "enabled": False}}, "reasoning.enabled"),
        ({"reasoning": {"effort": "none", "enabled": True}}, "reasoning.enabled"),
        ({"reasoning": {"max_tokens": 0, "enabled": True}}, "reasoning.enabled"),
    ],
)
def test_c17_conflicting_wishes_are_refused(fields: dict[str, Any], param: str) -> None:
    assert refusal(body(**fields)).param == param


def test_c18_what_only_vllm_understands_reaches_it_untouched() -> None:
    fields: dict[str, Any] = {
        "chat_template": "{{ x }}",
        "chat_template_kwargs": {"enable_thinking": False},
        "mm_processor_kwargs": {"num_crops": 4},
        "guided_json": SCHEMA,
        "guided_regex": "a+",
        "guided_choice": ["a", "b"],
        "guided_grammar": "root ::= 'a'",
        "structural_tag": '{"type":"structural_tag"}',
        "guided_decoding_backend": "xgrammar",
        "guided_whitespace_pattern": " ?",
    }
    call = understood(**fields)
    assert call.request.guided == fields
    assert call.ignored == ()


@pytest.mark.parametrize(
    ("field", "value", "param"),
    [
        ("guided_json", [], "guided_json"),
        ("guided_choice", [], "guided_choice"),
        ("guided_choice", "a", "guided_choice"),
        ("guided_regex", {}, "guided_regex"),
        ("structural_tag", 1, "structural_tag"),
        ("chat_template_kwargs", "a", "chat_template_kwargs"),
    ],
)
def test_c18_a_guide_of_another_shape_is_refused(field: str, value: Any, param: str) -> None:
    assert refusal(body(**{field: value})).param == param


def test_c13_c14_the_rest_of_what_is_asked_is_understood() -> None:
    request = understood(n=3, logprobs=True, top_logprobs=5, service_tier="flex").request
    assert request.choices == 3
    assert (request.sampling.logprobs, request.sampling.top_logprobs) == (True, 5)
    assert request.service_tier == "flex"


def test_c13_what_asks_for_nothing_reaches_no_provider() -> None:
    request = understood(n=None, logprobs=False, top_logprobs=0).request
    assert request.choices == 1
    assert (request.sampling.logprobs, request.sampling.top_logprobs) == (None, None)


def test_c10_openrouters_details_keep_their_signatures() -> None:
    signed = {
        "type": "reasoning.text",
        "format": "anthropic-claude-v1",
        "index": 0,
        "text": "so",
        "signature": "s",
    }
    hidden = {"type": "reasoning.encrypted", "format": "google-gemini-v1", "data": "x", "id": "r"}
    said = {"role": "assistant", "content": "hi", "reasoning_details": [signed, hidden]}
    first, second, _ = understood(messages=[*HELLO, said]).request.messages[1].content
    assert first == Reasoning(
        text="so",
        provenance=Provenance(signer=CLAUDE, signature="s"),
    )
    assert second == Reasoning(text="", provenance=Provenance(signer=GEMINI, data="x", id="r"))
