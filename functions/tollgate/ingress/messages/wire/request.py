"""The model for an Anthropic Messages request.

Declared fields are validated; other fields have no effect and are reported as ignored.
https://platform.claude.com/docs/en/api/messages (2026-11-22)
"""

import re
from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag

from tollgate.ingress.messages.wire.blocks import (
    BLOCKS_MAX,
    AssistantBlock,
    TextBlock,
    UserBlock,
)
from tollgate.ingress.messages.wire.server_tool_models import PDF, ServerToolType, tool_of_type
from tollgate.ingress.shared.wire.request_fields import (
    TOKENS_MAX,
    TOOLS_MAX,
    PresetFields,
)
from tollgate.ingress.shared.wire.request_model import (
    CacheControl,
    Json,
    Name,
    String,
    Wire,
    by_field,
    by_shape,
)

MESSAGES_MAX: Final = 100_000
STOPS_MAX: Final = 64
_EFFORTS = Literal["low", "medium", "high", "xhigh", "max"]

_Shape: Final = by_shape("a string or an array of blocks")
SystemContent = Annotated[
    String | Annotated[list[TextBlock], Field(max_length=BLOCKS_MAX), Tag("<array>")], _Shape
]


class UserMessage(Wire):
    """A user message: text, media and tool results."""

    role: Literal["user"]
    content: Annotated[
        String
        | Annotated[list[UserBlock], Field(min_length=1, max_length=BLOCKS_MAX), Tag("<array>")],
        _Shape,
    ]


class AssistantMessage(Wire):
    """An earlier answer from a model."""

    role: Literal["assistant"]
    content: Annotated[
        String | Annotated[list[AssistantBlock], Field(max_length=BLOCKS_MAX), Tag("<array>")],
        _Shape,
    ]


class SystemMessage(Wire):
    """Instructions that stand between other messages."""

    role: Literal["system"]
    content: SystemContent


Message = Annotated[
    Annotated[UserMessage, Tag("<user>")]
    | Annotated[AssistantMessage, Tag("<assistant>")]
    | Annotated[SystemMessage, Tag("<system>")],
    by_field("role", "user", "assistant", "system"),
]


_OF_CLAUDE: Final = "Sent to Claude if its host accepts the field; elsewhere reported as ignored."


class CustomTool(Wire):
    """A tool that the caller defines."""

    type: Literal["custom"] | None = None
    name: Name
    description: str | None = None
    input_schema: Json = Field(description="A JSON Schema of an object.")
    strict: bool | None = None
    cache_control: CacheControl | None = None
    defer_loading: bool | None = Field(default=None, description=_OF_CLAUDE)
    input_examples: list[Json] | None = Field(default=None, description=_OF_CLAUDE)
    eager_input_streaming: bool | None = Field(default=None, description=_OF_CLAUDE)
    allowed_callers: list[str] | None = Field(default=None, description=_OF_CLAUDE)


# Types of tools that the caller runs; if a type has no effect, a header reports that.
_RUN_BY_CALLERS: Final = (
    r"^(bash|browser_toolset|computer|computer_toolset|memory|text_editor)_[A-Za-z0-9_.-]{1,64}$"
)


class TypedTool(Wire):
    """A tool that Anthropic defines and the caller runs."""

    type: Annotated[str, Field(pattern=_RUN_BY_CALLERS)]
    name: Name | None = None


def _tool_tag(value: object) -> str | None:
    type_ = value.get("type") if isinstance(value, dict) else None
    if type_ is None or type_ == "custom":
        return "<custom>"
    if not isinstance(type_, str):
        return None
    if type_ == PDF or tool_of_type(type_) is not None:
        return "<server>"
    return "<typed>" if re.match(_RUN_BY_CALLERS, type_) else None


Tool = Annotated[
    Annotated[CustomTool, Tag("<custom>")]
    | Annotated[TypedTool, Tag("<typed>")]
    | Annotated[ServerToolType, Tag("<server>")],
    Discriminator(
        _tool_tag,
        custom_error_type="unknown_type",
        custom_error_message="must be 'custom', the type of a tool that the caller runs, such as "
        "'bash_20250124', or the type of a server tool, such as 'web_search_20250305'",
    ),
]


class ToolChoice(Wire):
    """The rule that states which tools the model may or must call."""

    type: Literal["auto", "any", "tool", "none"]
    name: Name | None = Field(default=None, description="The tool to call, for type `tool`.")
    disable_parallel_tool_use: bool | None = None


class Thinking(Wire):
    """The amount of thinking, and whether the answer shows it."""

    type: Literal["enabled", "adaptive", "disabled", "between_tools"]
    budget_tokens: Annotated[int, Field(ge=1_024, le=TOKENS_MAX)] | None = Field(
        default=None, description="Required for type `enabled`."
    )
    display: Literal["summarized", "omitted"] | None = None


class OutputSchema(Wire):
    """The JSON Schema for the answer."""

    type: Literal["json_schema"]
    json_schema: Json = Field(alias="schema")


class OutputConfig(Wire):
    """The effort, and the answer's format."""

    effort: _EFFORTS | None = None
    format: OutputSchema | None = None
    task_budget: Json | None = None


class Metadata(Wire):
    """The id of the caller's end user."""

    user_id: Annotated[str, Field(max_length=512)] | None = None


_NOTHING: Final = Field(default=None, description="Not supported.")


class Unserved(Wire):
    """Unsupported fields that would change the answer; any value except null is refused."""

    container: None = _NOTHING
    mcp_servers: Annotated[list[Any], Field(max_length=0)] | None = _NOTHING
    inference_geo: None = _NOTHING
    thread: None = _NOTHING


class PromptFields(PresetFields, Unserved):
    """The fields of a request, without `max_tokens`."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=MESSAGES_MAX, fail_fast=True)]
    system: SystemContent | None = None
    tools: Annotated[list[Tool], Field(max_length=TOOLS_MAX, fail_fast=True)] | None = None
    tool_choice: ToolChoice | None = None
    thinking: Thinking | None = None
    output_config: OutputConfig | None = None
    context_management: Json | None = None
    metadata: Metadata | None = None
    stop_sequences: Annotated[list[str], Field(max_length=STOPS_MAX)] | None = None
    temperature: Annotated[float, Field(ge=0, le=1)] | None = None
    top_p: Annotated[float, Field(ge=0, le=1)] | None = None
    top_k: Annotated[int, Field(ge=0, le=TOKENS_MAX)] | None = None
    service_tier: Literal["auto", "standard_only"] | None = None
    cache_control: CacheControl | None = Field(
        default=None, description="A cache mark for the last block of the request."
    )
    stream: bool | None = None


class MessagesRequest(PromptFields):
    """The body of POST /v1/messages; null means the same as omitting a field."""

    max_tokens: Annotated[int, Field(ge=1, le=TOKENS_MAX)]


class CountTokensRequest(PromptFields):
    """The body of POST /v1/messages/count_tokens."""

    max_tokens: Annotated[int, Field(ge=1, le=TOKENS_MAX)] | None = None
