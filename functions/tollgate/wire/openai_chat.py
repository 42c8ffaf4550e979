"""The OpenAI chat completion request as clients send it.

Fields that are declared are checked; a field that is not declared has no effect and is reported as
ignored. `Unserved` declares the fields that must not be ignored, because the answer would not be
what was asked for: each accepts only the value that asks for nothing. To serve one, give it its
real type in `ChatRequest` and read it in the parser. The same goes for content parts: another kind
joins `TextPart` in a union.

https://platform.openai.com/docs/api-reference/chat/create (2026-08-21)
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal
from uuid import UUID

from pydantic import (
    AfterValidator,
    AliasChoices,
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
)
from pydantic_core import PydanticCustomError

# OpenAI refuses more than 2,048 messages and documents 128 tools; other providers take more.
MESSAGES_MAX: Final = 4_096
PARTS_MAX: Final = 4_096
TOOLS_MAX: Final = 512
STOPS_MAX: Final = 4
METADATA_PAIRS_MAX: Final = 16
NAME_LENGTH_MAX: Final = 256
_TOKENS_MAX: Final = 2**31 - 1
_LOGIT_BIAS_MAX: Final = 1_024

# JSON that was decoded already: checking it again value by value would only cost time.
Json = dict[str, Any]


class Wire(BaseModel):
    """A shape of the wire: no coercion, and unknown fields are kept to be reported."""

    # Inputs are prompts: they must not turn up in a traceback.
    model_config = ConfigDict(extra="allow", strict=True, hide_input_in_errors=True)


_SHAPES: Final[Mapping[type, str]] = {str: "<string>", list: "<array>", dict: "<object>"}


def _shape(value: object) -> str | None:
    return _SHAPES.get(type(value))


def _role(value: object) -> str | None:
    return _tag(value, "role", "<user>")


def _part_type(value: object) -> str | None:
    return _tag(value, "type", "<text>")


def _tag(value: object, field: str, not_an_object: str) -> str | None:
    """What tells a union's members apart; any member can say that a value is not an object."""
    if not isinstance(value, dict):
        return not_an_object
    tag = value.get(field)
    return f"<{tag}>" if isinstance(tag, str) else None


def _uuid7(value: str) -> str:
    try:
        version = UUID(value).version
    except ValueError:
        version = None
    if version != 7:
        raise PydanticCustomError("uuid7", "must be a UUID version 7")
    return value


# Tags in angle brackets tell union members apart; they never appear in the name of a field.
String = Annotated[str, Tag("<string>")]
Name = Annotated[str, Field(min_length=1, max_length=NAME_LENGTH_MAX)]


class TextPart(Wire):
    """A piece of text."""

    type: Literal["text"]
    text: str


class RefusalPart(Wire):
    """A refusal of an earlier answer."""

    type: Literal["refusal"]
    refusal: str


_ContentShape = Discriminator(
    _shape,
    custom_error_type="content_shape",
    custom_error_message="must be a string or an array of parts",
)
AssistantPart = Annotated[
    Annotated[TextPart, Tag("<text>")] | Annotated[RefusalPart, Tag("<refusal>")],
    Discriminator(
        _part_type,
        custom_error_type="unknown_type",
        custom_error_message="must be 'text' or 'refusal'",
    ),
]
# What a person or an operator says is never empty; a tool or a model may have said nothing.
SpokenContent = Annotated[
    String | Annotated[list[TextPart], Field(min_length=1, max_length=PARTS_MAX), Tag("<array>")],
    _ContentShape,
]
ToolContent = Annotated[
    String | Annotated[list[TextPart], Field(max_length=PARTS_MAX), Tag("<array>")],
    _ContentShape,
]
AssistantContent = Annotated[
    String | Annotated[list[AssistantPart], Field(max_length=PARTS_MAX), Tag("<array>")],
    _ContentShape,
]


class FunctionCall(Wire):
    """The function that a model asked to be run."""

    name: Name
    arguments: str = Field(description="JSON text, as the model wrote it.")


class ToolCall(Wire):
    """A call that a model asked for."""

    id: Annotated[str, Field(min_length=1)]
    type: Literal["function"] = "function"
    function: FunctionCall
    extra_content: Json | None = Field(
        default=None, description="What a provider attached to the call; send it back untouched."
    )


class ReasoningDetail(Wire):
    """A part of what a model thought, as it was answered; send it back untouched."""

    type: str = "reasoning.text"
    index: int | None = None
    text: str | None = None
    summary: str | None = None
    opaque: Json | None = Field(default=None, description="Signatures, by provider.")


class SystemMessage(Wire):
    """Instructions of the operator."""

    role: Literal["system"]
    content: SpokenContent
    name: Name | None = None


class DeveloperMessage(Wire):
    """Instructions of the operator, under OpenAI's newer name."""

    role: Literal["developer"]
    content: SpokenContent
    name: Name | None = None


class UserMessage(Wire):
    """What the user said."""

    role: Literal["user"]
    content: SpokenContent
    name: Name | None = None


class AssistantMessage(Wire):
    """What a model answered earlier."""

    role: Literal["assistant"]
    content: AssistantContent | None = None
    refusal: str | None = None
    name: Name | None = None
    tool_calls: Annotated[list[ToolCall], Field(max_length=TOOLS_MAX)] | None = None
    reasoning: str | None = None
    reasoning_content: str | None = Field(default=None, description="Alias of `reasoning`.")
    reasoning_details: Annotated[list[ReasoningDetail], Field(max_length=PARTS_MAX)] | None = Field(
        default=None, description="Wins over `reasoning`: it carries the signatures."
    )
    function_call: None = Field(default=None, description="Not supported: use `tool_calls`.")
    audio: None = Field(default=None, description="Not supported.")


class ToolMessage(Wire):
    """The result of a call."""

    role: Literal["tool"]
    tool_call_id: Annotated[str, Field(min_length=1)]
    content: ToolContent | None


Message = Annotated[
    Annotated[SystemMessage, Tag("<system>")]
    | Annotated[DeveloperMessage, Tag("<developer>")]
    | Annotated[UserMessage, Tag("<user>")]
    | Annotated[AssistantMessage, Tag("<assistant>")]
    | Annotated[ToolMessage, Tag("<tool>")],
    Discriminator(
        _role,
        custom_error_type="unknown_role",
        custom_error_message="must be 'system', 'developer', 'user', 'assistant' or 'tool'",
    ),
]


class FunctionDefinition(Wire):
    """A function that the model may ask for."""

    name: Name
    description: str | None = None
    parameters: Json | None = Field(default=None, description="A JSON Schema.")
    strict: bool | None = None


class ToolDefinition(Wire):
    """A tool of the caller."""

    type: Literal["function"]
    function: FunctionDefinition


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
        _shape,
        custom_error_type="tool_choice_shape",
        custom_error_message="must be 'auto', 'none', 'required' or a named function",
    ),
]
Stop = Annotated[
    String | Annotated[list[str], Field(max_length=STOPS_MAX), Tag("<array>")],
    Discriminator(
        _shape,
        custom_error_type="stop_shape",
        custom_error_message="must be a string or an array of strings",
    ),
]


class StreamOptions(Wire):
    """How a stream is told; usage is always sent, whatever this says."""

    include_usage: bool | None = None


class TextFormat(Wire):
    """An answer in plain text."""

    type: Literal["text"]


_NOTHING: Final = Field(default=None, description="Not supported.")
_Nothing = Annotated[list[Any], Field(max_length=0)]


class Unserved(Wire):
    """Fields that would change the answer and are not served: anything else than nothing is 400."""

    n: Annotated[int, Field(ge=1, le=1)] | None = None
    response_format: TextFormat | None = None
    logprobs: Literal[False] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=0)] | None = None
    modalities: list[Literal["text"]] | None = None
    audio: None = _NOTHING
    functions: None = Field(default=None, description="Not supported: use `tools`.")
    function_call: None = Field(default=None, description="Not supported: use `tool_choice`.")
    web_search_options: None = _NOTHING
    moderation: None = _NOTHING
    plugins: _Nothing | None = None
    models: _Nothing | None = None
    provider: Annotated[Json, Field(max_length=0)] | None = None
    chat_template: None = _NOTHING
    chat_template_kwargs: None = _NOTHING
    mm_processor_kwargs: None = _NOTHING
    guided_json: None = _NOTHING
    guided_regex: None = _NOTHING
    guided_choice: None = _NOTHING
    guided_grammar: None = _NOTHING
    structural_tag: None = _NOTHING


class ChatRequest(Unserved):
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
    user: Annotated[str, Field(max_length=512)] | None = None
    metadata: (
        Annotated[
            dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
            Field(max_length=METADATA_PAIRS_MAX),
        ]
        | None
    ) = None
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
