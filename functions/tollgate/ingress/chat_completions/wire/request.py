"""The OpenAI chat completion request as clients send it.

Fields that are declared are checked; a field that is not declared has no effect and is reported as
ignored. `Unserved` declares the fields that must not be ignored, because the answer would not be
the requested one: each accepts only the value that requests nothing. To serve one, give it its
real type in `ChatFields` and read it in the parser.

https://platform.openai.com/docs/api-reference/chat/create (2026-08-21)
"""

from typing import Annotated, Any, Final, Literal

from pydantic import Field

from tollgate.core.request import Effort
from tollgate.ingress.chat_completions.wire.messages import Message
from tollgate.ingress.chat_completions.wire.options import Reasoning, ResponseFormat
from tollgate.ingress.chat_completions.wire.tools import ToolChoice, ToolDefinition
from tollgate.ingress.shared.wire.request_fields import (
    TOKENS_MAX,
    TOOLS_MAX,
    GuidedDecoding,
    ReplyFields,
    RoutingFields,
    SamplingFields,
)
from tollgate.ingress.shared.wire.request_model import Wire

# OpenAI refuses more than 2,048 messages; other providers take more.
MESSAGES_MAX: Final = 4_096
PLUGINS_MAX: Final = 16

_NOTHING: Final = Field(default=None, description="Not supported.")


class Unserved(Wire):
    """Fields that would change the answer and are not supported: a value is an error."""

    audio: None = _NOTHING
    functions: None = Field(default=None, description="Not supported: use `tools`.")
    function_call: None = Field(default=None, description="Not supported: use `tool_choice`.")
    moderation: None = _NOTHING


class ChatFields(GuidedDecoding, Unserved, ReplyFields, SamplingFields, RoutingFields):
    """The fields of a chat request, without the models of those that most requests leave out."""

    messages: Annotated[list[Message], Field(min_length=1, max_length=MESSAGES_MAX, fail_fast=True)]
    modalities: Annotated[list[Literal["text", "image"]], Field(max_length=8)] | None = Field(
        default=None, description="Content that the answer may have; text alone by default."
    )
    tools: Annotated[list[ToolDefinition], Field(max_length=TOOLS_MAX, fail_fast=True)] | None = (
        None
    )
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tokens: Annotated[int, Field(ge=1, le=TOKENS_MAX)] | None = None
    max_completion_tokens: Annotated[int, Field(ge=1, le=TOKENS_MAX)] | None = Field(
        default=None, description="Alias of `max_tokens`; the smaller one holds."
    )
    logprobs: bool | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=20)] | None = Field(
        default=None, description="Needs `logprobs`."
    )
    # Their models, in `plugins`, are imported with the first request that has one of them.
    plugins: Annotated[list[Any], Field(max_length=PLUGINS_MAX)] | None = None
    web_search_options: Any = None
    hi_tool_events: bool | None = Field(
        default=None, description="True means `events` of every plugin."
    )
    response_format: ResponseFormat | None = None
    reasoning_effort: Effort | None = None
    reasoning: Reasoning | None = None
    include_reasoning: bool | None = Field(
        default=None, description="False means the same as `reasoning.exclude`."
    )
    prompt_cache_key: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    service_tier: Annotated[str, Field(min_length=1, max_length=64)] | None = None
