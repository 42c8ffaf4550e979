"""The model for an OpenAI Responses request.

Declared fields are validated; other fields have no effect and are reported as ignored.
https://platform.openai.com/docs/api-reference/responses/create (2026-11-22)
"""

from typing import Annotated, Final, Literal

from pydantic import Field, Tag

from tollgate.core.request import Effort
from tollgate.ingress.responses.wire.input_items import Item
from tollgate.ingress.responses.wire.tool_models import Tool, ToolChoice
from tollgate.ingress.shared.wire.request_fields import (
    METADATA_PAIRS_MAX,
    TOKENS_MAX,
    TOOLS_MAX,
    GuidedDecoding,
    PresetFields,
    SamplingFields,
)
from tollgate.ingress.shared.wire.request_model import (
    Json,
    Name,
    String,
    Wire,
    by_field,
    by_shape,
)

ITEMS_MAX: Final = 100_000
_INCLUDE_MAX: Final = 32
_ALTERNATIVES_MAX: Final = 20

Input = Annotated[
    String
    | Annotated[
        list[Item], Field(min_length=1, max_length=ITEMS_MAX, fail_fast=True), Tag("<array>")
    ],
    by_shape("a string or an array of items"),
]


class PlainText(Wire):
    """Unrestricted text."""

    type: Literal["text"]


class JsonText(Wire):
    """Any JSON object."""

    type: Literal["json_object"]


class SchemaText(Wire):
    """JSON that matches a schema."""

    type: Literal["json_schema"]
    name: Name
    json_schema: Json = Field(alias="schema")
    description: str | None = None
    strict: bool | None = None


class TextOptions(Wire):
    """The format and verbosity of the text."""

    format: (
        Annotated[
            Annotated[PlainText, Tag("<text>")]
            | Annotated[JsonText, Tag("<json_object>")]
            | Annotated[SchemaText, Tag("<json_schema>")],
            by_field("type", "text", "json_object", "json_schema"),
        ]
        | None
    ) = None
    verbosity: Literal["low", "medium", "high"] | None = None


_Summary = Literal["auto", "concise", "detailed", "none"]


class ReasoningFields(Wire):
    """The amount of reasoning, and the kind of its summary."""

    effort: Effort | None = None
    summary: _Summary | None = None


class ContextManagement(Wire):
    """The rule for compacting a long conversation before its answer."""

    type: Literal["compaction"]
    compact_threshold: Annotated[int, Field(ge=1_000, le=TOKENS_MAX)] | None = Field(
        default=None,
        description="The estimated number of tokens above which the conversation is compacted; "
        "150,000 by default.",
    )


_NOTHING: Final = Field(default=None, description="Not supported.")


class Unserved(Wire):
    """Unsupported fields for state that OpenAI stores; all other values are refused."""

    conversation: None = _NOTHING
    prompt: None = _NOTHING


class ResponsesRequest(PresetFields, SamplingFields, GuidedDecoding, Unserved):
    """The body of POST /v1/responses; null means the same as omitting a field."""

    input: Input
    instructions: str | None = None
    tools: Annotated[list[Tool], Field(max_length=TOOLS_MAX, fail_fast=True)] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    max_tool_calls: Annotated[int, Field(ge=0)] | None = Field(
        default=None, description="Maximum number of runs of each server tool."
    )
    text: TextOptions | None = None
    reasoning: ReasoningFields | None = None
    include: Annotated[list[Name], Field(max_length=_INCLUDE_MAX)] | None = None
    max_output_tokens: Annotated[int, Field(ge=1, le=TOKENS_MAX)] | None = None
    top_logprobs: Annotated[int, Field(ge=0, le=_ALTERNATIVES_MAX)] | None = None
    truncation: Literal["auto", "disabled"] | None = None
    context_management: Annotated[list[ContextManagement], Field(max_length=1)] | None = None
    metadata: (
        Annotated[
            dict[Annotated[str, Field(max_length=64)], Annotated[str, Field(max_length=512)]],
            Field(max_length=METADATA_PAIRS_MAX),
        ]
        | None
    ) = None
    client_metadata: Json | None = Field(
        default=None,
        description="Client metadata, from which the gateway may take labels for records.",
    )
    prompt_cache_key: Annotated[str, Field(min_length=1, max_length=512)] | None = None
    service_tier: Name | None = None
    previous_response_id: Name | None = Field(
        default=None,
        description="The id of a stored response, whose input and output precede `input`. Refused "
        "if the key does not store responses.",
    )
    background: bool | None = Field(
        default=None,
        description="`true` replies at once with a response in the state `queued`, which a worker "
        "then answers. Needs stored responses.",
    )
    store: bool | None = Field(
        default=None,
        description="`false` prevents storing; otherwise the response is stored if `response_days` "
        "is set for the key or its workspace.",
    )
    user: Annotated[str, Field(max_length=512)] | None = None
    safety_identifier: Annotated[str, Field(max_length=512)] | None = None
    stream: bool | None = None


class CompactRequest(ResponsesRequest):
    """The body of POST /v1/responses/compact; sampling, format and reasoning have no effect."""

    input: Input | None = None  # type: ignore[assignment]
