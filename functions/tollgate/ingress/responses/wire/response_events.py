"""Models for the events of a streamed response, for the API description.

https://platform.openai.com/docs/api-reference/responses-streaming (2026-11-22)
"""

from typing import Annotated, Any, Literal

from pydantic import Field, RootModel

from tollgate.ingress.responses.wire.response_reply import (
    LimitedErrorObject,
    OutputItemModel,
    OutputRefusal,
    OutputText,
    ReasoningText,
    ResponseObject,
    SummaryText,
    UrlSource,
)
from tollgate.ingress.shared.wire.reply_models import Answer


class _Numbered(Answer):
    sequence_number: int = Field(description="The number of the event in the stream, from 0.")


class ResponseState(_Numbered):
    """The event that starts or ends a response."""

    type: Literal[
        "response.created", "response.in_progress", "response.completed", "response.incomplete"
    ]
    response: ResponseObject


class ResponseFailed(_Numbered):
    """The last event of a failed response."""

    type: Literal["response.failed"]
    response: ResponseObject


class ItemEvent(_Numbered):
    """The event that starts or ends an item."""

    type: Literal["response.output_item.added", "response.output_item.done"]
    output_index: int
    item: OutputItemModel


class _OfItem(_Numbered):
    item_id: str
    output_index: int


class ContentEvent(_OfItem):
    """The event that starts or ends a piece of a message or of reasoning."""

    type: Literal["response.content_part.added", "response.content_part.done"]
    content_index: int
    part: Annotated[OutputText | OutputRefusal | ReasoningText, Field(discriminator="type")]


class OutputTextDelta(_OfItem):
    """An addition to a text."""

    type: Literal["response.output_text.delta"]
    content_index: int
    delta: str
    logprobs: list[dict[str, Any]]


class OutputTextDone(_OfItem):
    """The event with a complete text."""

    type: Literal["response.output_text.done"]
    content_index: int
    text: str
    logprobs: list[dict[str, Any]]


class AnnotationAdded(_OfItem):
    """The event that adds a source to a text."""

    type: Literal["response.output_text.annotation.added"]
    content_index: int
    annotation_index: int
    annotation: UrlSource


class ContentDelta(_OfItem):
    """An addition to a refusal or to reasoning."""

    type: Literal["response.refusal.delta", "response.reasoning_text.delta"]
    content_index: int
    delta: str


class RefusalDone(_OfItem):
    """The event with a complete refusal."""

    type: Literal["response.refusal.done"]
    content_index: int
    refusal: str


class ReasoningTextDone(_OfItem):
    """The event with a complete reasoning text."""

    type: Literal["response.reasoning_text.done"]
    content_index: int
    text: str


class SummaryPart(_OfItem):
    """The event that starts or ends a summary."""

    type: Literal["response.reasoning_summary_part.added", "response.reasoning_summary_part.done"]
    summary_index: int
    part: SummaryText


class SummaryDelta(_OfItem):
    """An addition to a summary."""

    type: Literal["response.reasoning_summary_text.delta"]
    summary_index: int
    delta: str


class SummaryDone(_OfItem):
    """The event with a complete summary."""

    type: Literal["response.reasoning_summary_text.done"]
    summary_index: int
    text: str


class CallDelta(_OfItem):
    """An addition to the input of a call or run."""

    type: Literal[
        "response.function_call_arguments.delta",
        "response.custom_tool_call_input.delta",
        "response.mcp_call_arguments.delta",
    ]
    delta: str


class FunctionCallDone(_OfItem):
    """The event with the complete arguments of a call."""

    type: Literal["response.function_call_arguments.done"]
    name: str
    arguments: str


class CustomToolCallDone(_OfItem):
    """The event with the complete input of a call."""

    type: Literal["response.custom_tool_call_input.done"]
    input: str


class ImageCompleted(_OfItem):
    """The event that an image is complete; the item contains the image."""

    type: Literal["response.image_generation_call.completed"]


class SearchEvent(_OfItem):
    """The event that starts or ends a search; the item contains the results."""

    type: Literal[
        "response.web_search_call.in_progress",
        "response.web_search_call.searching",
        "response.web_search_call.completed",
    ]


class ToolRunEvent(_OfItem):
    """The event that starts or ends a run of another server tool; the item has the result."""

    type: Literal[
        "response.mcp_call.in_progress", "response.mcp_call.completed", "response.mcp_call.failed"
    ]


class ToolRunArguments(_OfItem):
    """The event with the complete arguments of a run."""

    type: Literal["response.mcp_call_arguments.done"]
    arguments: str


class StreamError(_Numbered):
    """The event with the error that ended the response."""

    type: Literal["error"]
    code: str
    message: str
    param: str | None
    error: LimitedErrorObject


class KeepAlive(Answer):
    """A keep-alive event, which has no sequence number."""

    type: Literal["keepalive"]


_Event = Annotated[
    ResponseState
    | ResponseFailed
    | ItemEvent
    | ContentEvent
    | OutputTextDelta
    | OutputTextDone
    | AnnotationAdded
    | ContentDelta
    | RefusalDone
    | ReasoningTextDone
    | SummaryPart
    | SummaryDelta
    | SummaryDone
    | CallDelta
    | FunctionCallDone
    | CustomToolCallDone
    | ImageCompleted
    | SearchEvent
    | ToolRunEvent
    | ToolRunArguments
    | StreamError
    | KeepAlive,
    Field(discriminator="type"),
]


class ResponseEvent(RootModel[_Event]):
    """The JSON data of an event."""
