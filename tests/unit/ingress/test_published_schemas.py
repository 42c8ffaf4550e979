"""What is written validates against OpenAI's own schemas, where they lie beside the recordings.

Keeps C6, C25, C30, C40.
"""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from jsonschema import Draft202012Validator
from pydantic import BaseModel

from tests.cells import cells
from tests.clocks import FixedClock
from tests.references import published_schema
from tests.strategies import event_streams, usages
from tests.unit.ingress.test_stream_equals_whole import both
from tests.unit.stores.records.test_generations import USUAL
from tollgate.core.errors import ErrorCode, GatewayError
from tollgate.core.events import Started, StreamEvent
from tollgate.core.ids import IdSource
from tollgate.core.response import GenerationResponse
from tollgate.core.usage import Usage
from tollgate.ingress.base import ServedBy
from tollgate.ingress.chat_completions.wire.plugins import ChatRequest
from tollgate.ingress.chat_completions.wire.response import (
    ChatCompletion,
    ChatCompletionChunk,
    ChatCompletionFailure,
)
from tollgate.ingress.errors import openai_reply
from tollgate.ingress.work.embeddings.format import Embeddings, EmbeddingsRenderer
from tollgate.ingress.work.embeddings.models import EmbeddingsReply


@pytest.fixture(scope="module")
def completion() -> Draft202012Validator:
    return Draft202012Validator(published_schema("openai.chat_completions.response"))


@pytest.fixture(scope="module")
def chunk() -> Draft202012Validator:
    return Draft202012Validator(published_schema("openai.chat_completions.stream_chunk"))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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


@cells("code", ErrorCode)
def test_c40_errors_validate_against_openais_schema(code: ErrorCode) -> None:
    validator = Draft202012Validator(published_schema("openai.error"))
    validator.validate(json.loads(openai_reply(GatewayError(code, "Why."), "req").body))


@pytest.mark.parametrize(
    "model", [ChatRequest, ChatCompletion, ChatCompletionChunk, ChatCompletionFailure]
)
def test_c6_the_models_make_schemas(model: type[BaseModel]) -> None:
    Draft202012Validator.check_schema(model.model_json_schema())


@pytest.mark.parametrize("encoding", ["float", "base64"])
def test_c81_embeddings_validate_against_openais_schema(encoding: str) -> None:
    validator = Draft202012Validator(published_schema("openai.embeddings.response"))
    body = {"model": "acme/vec", "input": ["a", "b"], "encoding_format": encoding}
    call = Embeddings(IdSource(FixedClock())).parse(json.dumps(body).encode())
    served = ServedBy(generation_id="g", created_s=0, model="acme/vec", provider="near")
    response = GenerationResponse(
        started=Started(),
        parts=(),
        notes={},
        usage=Usage(),
        finish="stop",
        raw_finish=None,
        stop_sequence=None,
        output=(b"[0.5, 1]", b"[-1e-3, 2]"),
    )
    reply = json.loads(EmbeddingsRenderer(call, served).whole([response], USUAL))
    if encoding == "float":
        # The schema has no base64, which the reference describes.
        validator.validate(reply)
    EmbeddingsReply.model_validate(reply)
