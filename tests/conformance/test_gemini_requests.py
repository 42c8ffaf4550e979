"""What we would send to Gemini validates against Google's published types."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # no types of its own

from tests.references import google_schema
from tests.unit.providers.gemini.requests import (
    ANSWER,
    BUDGET,
    HISTORY,
    LEVELS,
    PNG,
    WEATHER,
    assistant,
    call,
    encoded,
    result,
    signed,
    target,
    user,
)
from tollgate.core.content import Document, Image, InlineMedia, MediaUrl, Reasoning, Text
from tollgate.core.request import (
    Message,
    ReasoningOptions,
    Sampling,
    SystemMessage,
    Tool,
    ToolChoice,
    UserMessage,
)
from tollgate.providers.ports.base import WireRequest


@pytest.fixture(scope="module")
def validator() -> Any:
    return Draft202012Validator(google_schema("GenerateContentRequest"))


def check(wire: WireRequest, validator: Any) -> None:
    assert [error.message for error in validator.iter_errors(wire.body)] == []


def test_the_schema_refuses_what_google_does_not_know(validator: Any) -> None:
    assert list(validator.iter_errors({"contents": [{"parts": [{"song": 1}]}]}))
    assert list(validator.iter_errors({"contents": "x"}))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(HISTORY)
def test_every_valid_history_validates(validator: Any, messages: list[Message]) -> None:
    check(encoded(user("start"), *messages), validator)


@pytest.mark.parametrize("dialect", [BUDGET, LEVELS])
@pytest.mark.parametrize("output_format", [None, ANSWER])
@pytest.mark.parametrize(
    "choice",
    [
        None,
        ToolChoice(mode="auto"),
        ToolChoice(mode="none"),
        ToolChoice(mode="required"),
        ToolChoice(mode="named", name="weather"),
    ],
)
def test_tools_and_every_parameter_validate(
    choice: ToolChoice | None, output_format: Any, dialect: Any, validator: Any
) -> None:
    wire = encoded(
        to=target(dialect, project="p", location="global"),
        tools=(WEATHER, Tool(name="now", description="")),
        tool_choice=choice,
        output_format=output_format,
        output_tokens_max=10,
        reasoning=ReasoningOptions(effort="high"),
        sampling=Sampling(
            temperature=2.0,
            top_p=1.0,
            top_k=3,
            seed=-1,
            presence_penalty=1.0,
            frequency_penalty=1.0,
            stop=("END",),
            logprobs=True,
            top_logprobs=2,
        ),
    )
    check(wire, validator)


def test_media_and_signatures_validate(validator: Any) -> None:
    pdf = InlineMedia(media_type="application/pdf", base64="cGRm")
    wire = encoded(
        SystemMessage(content=(Text(text="S"),)),
        UserMessage(
            content=(
                Image(source=PNG),
                Image(source=MediaUrl(url="https://x.example/a.jpg")),
                Document(source=pdf),
            )
        ),
        assistant(
            Reasoning(text="Hm.", provenance=signed()),
            Reasoning(text="", provenance=signed()),
            call("a", provenance=signed()),
        ),
        result("a", "x", Image(source=PNG)),
    )
    check(wire, validator)
