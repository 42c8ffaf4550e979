"""What is written validates against OpenAI's own schemas, where they lie beside the recordings.

Keeps C6, C25, C30, C40.
"""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from tests.references import published_schema
from tests.strategies import event_streams, usages
from tests.unit.ingress.test_stream_equals_whole import both
from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.events import StreamEvent
from tollgate.core.usage import Usage
from tollgate.ingress.chat_completions.wire.request import ChatRequest
from tollgate.ingress.chat_completions.wire.response import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionFailure,
)
from tollgate.ingress.errors import openai_reply


@pytest.fixture(scope="module")
def completion() -> Draft202012Validator:
    return Draft202012Validator(published_schema("openai.chat_completions.response"))


@pytest.fixture(scope="module")
def chunk() -> Draft202012Validator:
    return Draft202012Validator(published_schema("openai.chat_completions.stream_chunk"))


@settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(events=event_streams(), usage=usages)
def test_c25_c30_replies_validate_against_openais_schema(
    completion: Draft202012Validator,
    chunk: Draft202012Validator,
    events: list[StreamEvent],
    usage: Usage,
) -> None:
    stream, whole = both(events, usage)
    completion.validate(json.loads(whole))
    for frame in stream.split(b"\n\n")[:-2]:
        chunk.validate(json.loads(frame.removeprefix(b"data: ")))


@pytest.mark.parametrize("code", ErrorCode)
def test_c40_errors_validate_against_openais_schema(code: ErrorCode) -> None:
    validator = Draft202012Validator(published_schema("openai.error"))
    validator.validate(json.loads(openai_reply(GatewayError(code, "Why."), "req").body))


@pytest.mark.parametrize(
    "model", [ChatRequest, ChatCompletion, ChatCompletionChunk, ChatCompletionFailure]
)
def test_c6_the_models_make_schemas(model: type[BaseModel]) -> None:
    Draft202012Validator.check_schema(model.model_json_schema())
