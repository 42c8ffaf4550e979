"""Requests for Gemini, as the tests of encoding make them."""

from typing import Any

import pytest
from hypothesis import strategies as st

from tollgate.core.content import (
    Document,
    Image,
    InlineMedia,
    Provenance,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
)
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.request import (
    AssistantMessage,
    GenerationRequest,
    Message,
    SchemaOutput,
    SystemMessage,
    Tool,
    ToolMessage,
    UserMessage,
)
from tollgate.core.signers import GEMINI
from tollgate.providers.ports.base import Target, WireRequest
from tollgate.providers.ports.dialect import Dialect, GeminiDialect
from tollgate.providers.ports.formats import codec_of

TARGET = Target(
    provider="google", model="google/m", upstream_model="gemini-9", output_tokens_max=4096
)
SCHEMA = {"$schema": "https://json-schema.org/x", "title": "W", "$defs": {}, "type": "object"}
WEATHER = Tool(name="weather", description="The weather.", parameters=SCHEMA)
PNG = InlineMedia(media_type="image/png", base64="aW1hZ2U=")
ANSWER = SchemaOutput(name="person", schema=SCHEMA)
BUDGET = Dialect(
    reasoning="gemini_budget",
    gemini=GeminiDialect(thinking_tokens_min=128, thinking_tokens_max=32768),
)
STOPPABLE = Dialect(reasoning="gemini_budget", efforts=("none", "low", "medium", "high"))
LEVELS = Dialect(
    reasoning="gemini_level",
    efforts=("low", "high"),
    gemini=GeminiDialect(signed_calls=True, schema_beside_tools=True),
)


def signed(signature: str = "c2ln") -> Provenance:
    return Provenance(signer=GEMINI, signature=signature)


def user(*parts: str) -> UserMessage:
    return UserMessage(content=tuple(Text(text=part) for part in parts))


def system(text: str) -> SystemMessage:
    return SystemMessage(content=(Text(text=text),))


def call(id_: str = "a", arguments: str = "{}", **fields: Any) -> ToolCall:
    return ToolCall(id=id_, name="weather", arguments=arguments, **fields)


def assistant(*parts: Text | Reasoning | Refusal | ToolCall) -> AssistantMessage:
    return AssistantMessage(content=parts)


def result(id_: str, *content: str | Image | Document) -> ToolMessage:
    parts = (Text(text=part) if isinstance(part, str) else part for part in content)
    return ToolMessage(call_id=id_, content=tuple(parts))


def target(dialect: Dialect, **fields: Any) -> Target:
    return Target(
        provider="google",
        model="google/m",
        upstream_model="m",
        dialect=dialect,
        **fields,
    )


def encoded(*messages: Message, to: Target = TARGET, **fields: Any) -> WireRequest:
    request = GenerationRequest(model="google/m", messages=messages or (user("?"),), **fields)
    return codec_of("gemini").encode(request, to)


def turns(*messages: Message, to: Target = TARGET) -> Any:
    return encoded(*messages, to=to).body["contents"]


def config(to: Target = TARGET, **fields: Any) -> Any:
    return encoded(to=to, **fields).body.get("generationConfig", {})


def refusal(*messages: Message) -> str:
    with pytest.raises(RequestError) as raised:
        encoded(*messages)
    assert raised.value.code is ErrorCode.INVALID_REQUEST
    assert raised.value.param == "messages"
    return raised.value.message


@st.composite
def _steps(draw: st.DrawFn) -> list[Message]:
    """A turn of the user, or calls with all their results in any order."""
    if draw(st.booleans()):
        return [
            draw(st.sampled_from([user("hi"), user(""), system("S"), assistant(Text(text="t"))]))
        ]
    ids = [f"c{number}" for number in range(draw(st.integers(1, 3)))]
    calls = assistant(Text(text=draw(st.sampled_from(["", "x"]))), *map(call, ids))
    return [calls, *(result(id_, "r") for id_ in draw(st.permutations(ids)))]


HISTORY = st.lists(_steps(), max_size=5).map(lambda steps: [m for step in steps for m in step])
