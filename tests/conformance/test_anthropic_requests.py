"""What we would send to Anthropic validates against its published types."""

from itertools import product
from typing import Any

import jsonschema
import pytest
from hypothesis import HealthCheck, given, settings

from tests.conformance.anthropic_requests import CARRIERS, is_ours, read, target
from tests.conformance.recordings import Recording, cases, recordings
from tests.references import published_schema
from tests.unit.providers.anthropic import requests as claude_requests
from tests.unit.providers.anthropic.test_turns import HISTORY, NOTE, PDF, PNG
from tollgate.core.content import CacheMark, Document, Image, Text
from tollgate.core.request import (
    GenerationRequest,
    JsonOutput,
    Message,
    ReasoningOptions,
    Sampling,
    SchemaOutput,
    Tool,
    ToolChoice,
    ToolMessage,
    UserMessage,
)
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.formats import codec_of

DIALECTS = [claude_requests.OLDER, claude_requests.NEWER]
CHOICES = [
    None,
    ToolChoice(mode="auto"),
    ToolChoice(mode="none"),
    ToolChoice(mode="required"),
    ToolChoice(mode="named", name="weather"),
]
FORMS = [
    None,
    JsonOutput(),
    SchemaOutput(name="x", schema={"type": "object", "properties": {"a": {"type": "string"}}}),
]


@pytest.fixture(scope="module")
def schema() -> Any:
    """The published types, closed: Anthropic answers "Extra inputs are not permitted"."""
    published = published_schema("anthropic.messages.request")
    closed = {
        name: {"additionalProperties": False, **each} for name, each in published["$defs"].items()
    }
    return jsonschema.Draft202012Validator(
        {**published, "$defs": closed, "additionalProperties": False}
    )


def check(wire: WireRequest, at: Target, schema: Any) -> None:
    """The types are of version 2026-10-21, of an answer in one piece, from Anthropic itself.

    The version we pin has three parameters more; the other carriers say theirs in the body.
    """
    ours = {"stream", "anthropic_version", "temperature", "top_p", "top_k"}
    body = {name: value for name, value in wire.body.items() if name not in ours}
    schema.validate({"model": at.upstream_model, **body})


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(HISTORY)
def test_every_valid_history_validates(schema: Any, messages: list[Message]) -> None:
    at = claude_requests.target()
    check(claude_requests.encoded(claude_requests.user("start"), *messages, at=at), at, schema)


@pytest.mark.parametrize(("dialect", "choice", "form"), [*product(DIALECTS, CHOICES, FORMS)])
def test_tools_forms_and_every_parameter_validate(
    dialect: Any, choice: ToolChoice | None, form: Any, schema: Any
) -> None:
    at = claude_requests.target(dialect)
    wire = claude_requests.encoded(
        claude_requests.user("?"),
        at=at,
        tools=(claude_requests.WEATHER, Tool(name="now", description="", strict=True)),
        tool_choice=choice,
        parallel_tool_calls=False,
        output_format=form,
        reasoning=ReasoningOptions(effort="minimal"),
        sampling=Sampling(temperature=2.0, top_p=0.5, top_k=3, stop=("", "END")),
        service_tier="default",
        user="me",
    )
    check(wire, at, schema)


def test_every_kind_of_content_validates(schema: Any) -> None:
    shown = (Text(text="See", cache=CacheMark(lifetime="1h")), Image(source=PNG))
    files = (Document(source=PDF, filename="a.pdf"), Document(source=NOTE, cache=CacheMark()))
    at = claude_requests.target()
    wire = claude_requests.encoded(
        UserMessage(content=(*shown, *files)),
        claude_requests.assistant(claude_requests.call()),
        ToolMessage(call_id="a", content=(*shown, *files)),
        at=at,
    )
    check(wire, at, schema)


@pytest.mark.parametrize("recording", cases(r for r in recordings(*CARRIERS) if is_ours(r)))
def test_a_recorded_request_validates_when_we_send_it(recording: Recording, schema: Any) -> None:
    request: GenerationRequest = read(recording.sent)
    at = target(recording)
    check(codec_of("anthropic").encode(request, at), at, schema)
