"""The OpenAI chat completion request as clients send it.

Fields that are declared are checked; a field that is not declared has no effect and is reported as
ignored. `Unserved` declares the fields that must not be ignored, because the answer would not be
the requested one: each accepts only the value that requests nothing. To serve one, give it its
real type in `ChatRequest` and read it in the parser.

https://platform.openai.com/docs/api-reference/chat/create (2026-08-21)
"""

from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import AfterValidator, AliasChoices, Discriminator, Field, Tag
from pydantic_core import PydanticCustomError

from tollgate.core.request import Effort
from tollgate.ingress.chat_completions.wire.messages import Message
from tollgate.ingress.chat_completions.wire.options import GuidedDecoding, Reasoning, ResponseFormat
from tollgate.ingress.chat_completions.wire.parts import CacheControl
from tollgate.ingress.chat_completions.wire.preferences import Names, ProviderPreferences
from tollgate.ingress.chat_completions.wire.request_model import Json, Name, String, Wire, shape

# OpenAI refuses more than 2,048 messages and documents 128 tools; other providers take more.
MESSAGES_MAX: Final = 4_096
TOOLS_MAX: Final = 512
STOPS_MAX: Final = 4
CHOICES_MAX: Final = 8
METADATA_PAIRS_MAX: Final = 16
_TOKENS_MAX: Final = 2**31 - 1
_LOGIT_BIAS_MAX: Final = 1_024


class FunctionDefinition(Wire):
    """A function that the model may call."""

    name: Name
    description: str | None = None
    parameters: Json | None = Field(default=None, description="A JSON Schema.")
    strict: bool | None = None


class ToolDefinition(Wire):
    """A tool of the caller."""

    type: Literal["function"]
    function: FunctionDefinition
    cache_control: CacheControl | None = None


class NamedFunction(Wire):
    """The name of a function."""

    name: Name


class NamedToolChoice(Wire):
    """The one tool that must be called."""

    type: Literal["function"]
    function: NamedFunction


ToolChoice = Annotated[
    Annotated[Literal["auto", "none", "required"], Tag("<string>")]
    | Annotated[NamedToolChoice, Tag("<object>")],
    Discriminator(
        shape,
        custom_error_type="tool_choice_shape",
        custom_error_message="must be 'auto', 'none', 'required' or a named function",
    ),
]
Stop = Annotated[
    String | Annotated[list[str], Field(max_length=STOPS_MAX), Tag("<array>")],
    Discriminator(
        shape,
        custom_error_type="stop_shape",
        custom_error_message="must be a string or an array of strings",
    ),
]


class StreamOptions(Wire):
    """Options of a stream; usage is always sent, whatever this says."""

    include_usage: bool | None = None


_NOTHING: Final = Field(default=None, description="Not supported.")
_Nothing = Annotated[list[Any], Field(max_length=0)]


class Unserved(Wire):
    """Fields that would change the answer and are not supported: a value is an error."""

    modalities: list[Literal["text"]] | None = None
    audio: None = _NOTHING
    functions: None = Field(default=None, description="Not supported: use `tools`.")
    function_call: None = Field(default=None, description="Not supported: use `tool_choice`.")
    web_search_options: None = _NOTHING
    moderation: None = _NOTHING
    plugins: _Nothing | None = None


def _uuid7(value: str) -> str:
    try:
        version = UUID(value).version
    except ValueError:
        version = None
    if version != 7:
        raise PydanticCustomError("uuid7", "must be a UUID version 7")
    return value


class ChatRequest(GuidedDecoding, Unserved):
    """The body of POST /v1/chat/completions. Null means the same as leaving a field out."""

    model: Name
    messages: Annotated[list[Message], Field(min_length=1, max_length=MESSAGES_MAX, fail_fast=True)]
    tools: Annotated[list[ToolDefinition], Field(max_length=TOOLS_MAX, fail_fast=True)] | None = (
        None
    )
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: Annotated[int, Field(ge=1, le=_TOKENS_MAX)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=_TOKENS_MAX)] | None = Field(
        default=None, description="Alias of `max_tokens`; the smaller one holds."
    )
    temperature: Annotated[float, Field(ge=0, le=2)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, le=_TOKENS_MAX)] | None = None
    min_p: Annotated[float, Field(ge=0, le=1)] | None = None
    presence_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    frequency_penalty: Annotated[float, Field(ge=-2, le=2)] | None = None
    repetition_penalty: Annotated[float, Field(gt=0, le=2)] | None = None
    seed: Annotated[int, Field(ge=-(2**63), le=2**63 - 1)] | None = None
    stop: Stop | None = Field(default=None, description="A string, or up to four.")
    logit_bias: (
        Annotated[
            dict[
                Annotated[str, Field(pattern=r"^[0-9]{1,10}$")],
                Annotated[float, Field(ge=-100, le=100)],
            ],
            Field(max_length=_LOGIT_BIAS_MAX),
        ]
        | None
    ) = None
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = Field(
        default=None, description="Needs `logprobs`."
    )
    n: Annotated[int, Field(ge=1, le=CHOICES_MAX)] | None = Field(
        default=None, description="How many answers; each is billed."
    )
    response_format: ResponseFormat | None = None
    reasoning_effort: Effort | None = None
    reasoning: Reasoning | None = None
    include_reasoning: bool | None = Field(
        default=None, description="False means the same as `reasoning.exclude`."
    )
    prompt_cache_key: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    service_tier: Annotated[str, Field(min_length=1, max_length=64)] | None = None
    user: Annotated[str, Field(max_length=512)] | None = None
    metadata: (
        Annotated[
            dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
            Field(max_length=METADATA_PAIRS_MAX),
        ]
        | None
    ) = None
    models: Names | None = Field(
        default=None, description="Names to try, in order, when `model` cannot serve."
    )
    provider: ProviderPreferences | None = None
    session_id: Annotated[str, Field(min_length=1, max_length=256)] | None = Field(
        default=None, description="Requests of one session go to the same endpoint."
    )
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    usage_on: Literal["finish"] | None = Field(
        default=None,
        description="`finish` puts usage on the finish frame, for clients that cannot read a "
        "frame with empty `choices`.",
    )
    episode_id: (
        Annotated[str, AfterValidator(_uuid7), Field(json_schema_extra={"format": "uuid"})] | None
    ) = Field(
        default=None,
        validation_alias=AliasChoices("episode_id", "tensorzero::episode_id"),
        description="A UUID version 7, echoed in the answer.",
    )
