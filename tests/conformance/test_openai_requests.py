"""What we would send to OpenAI validates against its published schemas."""

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from tests.references import published_schema
from tests.unit.providers.requests import requests
from tollgate.core.request import GenerationRequest
from tollgate.providers.ports.base import Codec, Target
from tollgate.providers.ports.dialect import Dialect
from tollgate.providers.ports.formats import codec_of

TARGET = Target(
    provider="openai",
    model="openai/m",
    upstream_model="m",
    supports=frozenset({"tools", "structured_output", "reasoning", "prompt_cache"}),
    dialect=Dialect(
        output_limit_field="max_completion_tokens",
        developer_role=True,
        reasoning="effort",
        reasoning_summaries=True,
        native_choices=True,
        refuses=("min_p", "repetition_penalty", "top_k"),
    ),
)
CODECS: list[tuple[str, Codec]] = [
    ("openai.chat_completions.request", codec_of("openai_chat")),
    ("openai.responses.request", codec_of("openai_responses")),
]


@pytest.mark.parametrize(("schema", "codec"), CODECS, ids=["chat", "responses"])
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_every_request_validates(schema: str, codec: Codec, data: st.DataObject) -> None:
    audio = schema == CODECS[0][0]
    request: GenerationRequest = data.draw(requests(audio=audio, file_urls=not audio))
    body = dict(codec.encode(request, TARGET).body)
    Draft202012Validator(any_of(published_schema(schema))).validate(body)


def any_of(schema: Any) -> Any:
    """The schema with its discriminated unions read as such.

    A message of several parts is both an EasyInputMessage and an InputMessage there, which a
    validator that knows no discriminator takes for a contradiction.
    """
    match schema:
        case dict():
            return {
                "anyOf" if key == "oneOf" else key: any_of(inner) for key, inner in schema.items()
            }
        case list():
            return [any_of(inner) for inner in schema]
        case _:
            return schema
