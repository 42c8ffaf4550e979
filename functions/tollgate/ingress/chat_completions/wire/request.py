"""The model for an OpenAI chat completion request.

Declared fields are validated; other fields have no effect and are reported as ignored. `Unserved`
declares unsupported fields that would change the answer; they accept only null. To support such a
field, declare it with its real type in `ChatFields` and read it in the parser.

https://platform.openai.com/docs/api-reference/chat/create (2026-08-21), OpenRouter's `reasoning`
(https://openrouter.ai/docs/use-cases/reasoning-tokens, 2026-11-21)
"""

from typing import Annotated, Any, Final, Literal

from pydantic import Field, Tag

from tollgate.core.request import Effort
from tollgate.ingress.chat_completions.wire.messages import Message
from tollgate.ingress.chat_completions.wire.tools import ToolChoice, ToolDefinition
from tollgate.ingress.shared.wire.request_fields import (
    TOKENS_MAX,
    TOOLS_MAX,
    GuidedDecoding,
    PresetFields,
    ReplyFields,
    SamplingFields,
)
from tollgate.ingress.shared.wire.request_model import Json, Name, Wire, by_field

# OpenAI refuses more than 2,048 messages; other providers accept more.
MESSAGES_MAX: Final = 4_096
PLUGINS_MAX: Final = 16

_NOTHING: Final = Field(default=None, description="Not supported.")


class TextFormat(Wire):
    """A plain text answer."""

    type: Literal["text"]


class JsonObjectFormat(Wire):
    """A JSON object as the answer; Together and Fireworks also accept a schema here."""

    type: Literal["json_object"]
    json_schema: Json | None = Field(default=None, alias="schema")


class JsonSchema(Wire):
    """A JSON Schema, and whether the answer must match it strictly."""

    name: Name | None = None
    description: str | None = None
    json_schema: Json | None = Field(default=None, alias="schema")
    strict: bool | None = None


class JsonSchemaFormat(Wire):
    """An answer that matches a JSON Schema, sent as `json_schema.schema` or as `schema`."""

    type: Literal["json_schema"]
    json_schema: JsonSchema | None = None
    bare_schema: Json | None = Field(default=None, alias="schema")


ResponseFormat = Annotated[
    Annotated[TextFormat, Tag("<text>")]
    | Annotated[JsonObjectFormat, Tag("<json_object>")]
    | Annotated[JsonSchemaFormat, Tag("<json_schema>")],
    by_field("type", "text", "json_object", "json_schema"),
]


class Reasoning(Wire):
    """The amount of reasoning, by effort or tokens, and whether the answer shows it."""

    effort: Effort | None = None
    max_tokens: Annotated[int, Field(ge=0, le=TOKENS_MAX)] | None = None
    exclude: bool | None = None
    enabled: bool | None = None


class Unserved(Wire):
    """Unsupported fields that would change the answer; any value except null is refused."""

    audio: None = _NOTHING
    functions: None = Field(default=None, description="Not supported: use `tools`.")
    function_call: None = Field(default=None, description="Not supported: use `tool_choice`.")
    moderation: None = _NOTHING


class ChatFields(GuidedDecoding, Unserved, ReplyFields, SamplingFields, PresetFields):
    """The fields of a chat request; `plugins` and `web_search_options` are validated later."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=MESSAGES_MAX, fail_fast=True)]
    modalities: Annotated[list[Literal["text", "image"]], Field(max_length=8)] | None = Field(
        default=None, description="Content types that the answer may have; only text by default."
    )
    tools: Annotated[list[ToolDefinition], Field(max_length=TOOLS_MAX, fail_fast=True)] | None = (
        None
    )
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: Annotated[int, Field(ge=1, le=TOKENS_MAX)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=TOKENS_MAX)] | None = Field(
        default=None, description="Alias of `max_tokens`; the smaller value applies."
    )
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = Field(
        default=None, description="Needs `logprobs`."
    )
    # The models for these two fields are in `wire.plugins`, which is imported on the first request
    # with one of the fields.
    plugins: Annotated[list[Any], Field(max_length=PLUGINS_MAX)] | None = None
    web_search_options: Any = None
    hi_tool_events: bool | None = Field(
        default=None, description="True sets `events` of every plugin."
    )
    response_format: ResponseFormat | None = None
    reasoning_effort: Effort | None = None
    reasoning: Reasoning | None = None
    include_reasoning: bool | None = Field(
        default=None, description="False means the same as `reasoning.exclude`."
    )
    prompt_cache_key: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    service_tier: Annotated[str, Field(min_length=1, max_length=64)] | None = None
