"""What we would send to Bedrock validates against its published service model."""

from typing import Any
from urllib.parse import unquote

import pytest
from botocore.model import ServiceModel  # type: ignore[import-untyped]  # botocore ships no types
from botocore.validate import ParamValidator  # type: ignore[import-untyped]
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from tests.references import aws_service_model
from tests.unit.providers.bedrock.test_encode import HISTORY, TARGET, WEATHER, user
from tests.unit.providers.requests import requests
from tollgate.core.errors import RequestError
from tollgate.core.request import GenerationRequest, Message, Sampling, Tool, ToolChoice
from tollgate.providers.ports.base import Guardrail, WireRequest
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import codec_of


@pytest.fixture(scope="module")
def shape() -> Any:
    model = ServiceModel(aws_service_model("bedrock-runtime"), "bedrock-runtime")
    return model.operation_model("ConverseStream").input_shape


def check(wire: WireRequest, shape: Any) -> None:
    model_id = unquote(wire.path.split("/")[2])
    report = ParamValidator().validate({"modelId": model_id, **wire.body}, shape)
    assert not report.has_errors(), report.generate_report()
    assert set(wire.body) <= set(shape.members)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(HISTORY)
def test_every_valid_history_validates(shape: Any, messages: list[Message]) -> None:
    request = GenerationRequest(model="acme/m", messages=(user("start"), *messages))
    check(codec_of("bedrock").encode(request, TARGET), shape)


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
def test_tools_and_every_parameter_validate(choice: ToolChoice | None, shape: Any) -> None:
    request = GenerationRequest(
        model="acme/m",
        messages=(user("?"),),
        tools=(WEATHER, Tool(name="now", description="")),
        tool_choice=choice,
        output_tokens_max=10,
        sampling=Sampling(temperature=2.0, top_p=1.0, stop=("", "END")),
    )
    check(codec_of("bedrock").encode(request, TARGET), shape)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(requests(), st.sampled_from(["claude_budget", "claude_adaptive", "nova", "effort", None]))
def test_every_request_validates(shape: Any, request: GenerationRequest, reasoning: Any) -> None:
    target = replace(
        TARGET,
        supports=frozenset({"tools", "structured_output", "reasoning", "prompt_cache"}),
        dialect=Dialect(reasoning=reasoning, refuses=()),
        guardrail=Guardrail(id="abc123", version="DRAFT"),
    )
    try:
        wire = codec_of("bedrock").encode(request, target)
    except RequestError:
        # A picture behind a URL, which Bedrock does not fetch.
        assert "MediaUrl" in repr(request)
        return
    check(wire, shape)
