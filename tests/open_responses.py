"""Responses and their events against the models of the Open Responses schema.

The package `openresponses-types` has the models, generated from version 2026-04-24 of the schema
(https://www.openresponses.org, seen on 2026-11-27).

Keeps C74.
"""

import json
from collections.abc import Mapping
from typing import Any, Final

from openresponses_types import types as schema
from pydantic import BaseModel

Json = dict[str, Any]

# Items, tools and events that OpenAI's format has and the schema lacks.
ITEMS_OF_OPENAI: Final = frozenset(
    {"custom_tool_call", "image_generation_call", "mcp_call", "web_search_call"}
)
TOOLS_OF_OPENAI: Final = frozenset({"custom", "namespace"})
EVENTS_OF_OPENAI: Final = (
    "response.custom_tool_call_input.",
    "response.image_generation_call.",
    "response.mcp_call",
    "response.reasoning_text.",
    "response.web_search_call.",
)

_MODELS: Final[Mapping[str, type[BaseModel]]] = {
    "error": schema.ErrorStreamingEvent,
    "response.completed": schema.ResponseCompletedStreamingEvent,
    "response.content_part.added": schema.ResponseContentPartAddedStreamingEvent,
    "response.content_part.done": schema.ResponseContentPartDoneStreamingEvent,
    "response.created": schema.ResponseCreatedStreamingEvent,
    "response.failed": schema.ResponseFailedStreamingEvent,
    "response.function_call_arguments.delta": (
        schema.ResponseFunctionCallArgumentsDeltaStreamingEvent
    ),
    "response.function_call_arguments.done": (
        schema.ResponseFunctionCallArgumentsDoneStreamingEvent
    ),
    "response.in_progress": schema.ResponseInProgressStreamingEvent,
    "response.incomplete": schema.ResponseIncompleteStreamingEvent,
    "response.output_item.added": schema.ResponseOutputItemAddedStreamingEvent,
    "response.output_item.done": schema.ResponseOutputItemDoneStreamingEvent,
    "response.output_text.annotation.added": (
        schema.ResponseOutputTextAnnotationAddedStreamingEvent
    ),
    "response.output_text.delta": schema.ResponseOutputTextDeltaStreamingEvent,
    "response.output_text.done": schema.ResponseOutputTextDoneStreamingEvent,
    "response.reasoning_summary_part.added": (
        schema.ResponseReasoningSummaryPartAddedStreamingEvent
    ),
    "response.reasoning_summary_part.done": schema.ResponseReasoningSummaryPartDoneStreamingEvent,
    "response.reasoning_summary_text.delta": schema.ResponseReasoningSummaryDeltaStreamingEvent,
    "response.reasoning_summary_text.done": schema.ResponseReasoningSummaryDoneStreamingEvent,
    "response.refusal.delta": schema.ResponseRefusalDeltaStreamingEvent,
    "response.refusal.done": schema.ResponseRefusalDoneStreamingEvent,
}


def check_response(response: Json) -> None:
    """Raise ValidationError unless the schema permits a response; leave out what it lacks."""
    schema.ResponseResource.model_validate(_known_response(response))


def check_event(event: Json) -> None:
    """Raise ValidationError unless the schema permits an event; leave out what it lacks."""
    kind = event["type"]
    if kind == "keepalive" or kind.startswith(EVENTS_OF_OPENAI):
        return
    if "item" in event and event["item"]["type"] in ITEMS_OF_OPENAI:
        return
    if "response" in event:
        event = {**event, "response": _known_response(event["response"])}
    _MODELS[kind].model_validate(event)


def check_stream(stream: bytes) -> None:
    """Raise ValidationError unless the schema permits every event of a stream."""
    for piece in stream.split(b"\n\n")[:-1]:
        check_event(json.loads(piece.partition(b"\ndata: ")[2]))


def _known_response(response: Json) -> Json:
    # The schema permits no schema in the format of a text, which OpenAI's has.
    text = response["text"]
    if text["format"]["type"] == "json_schema":
        text = {**text, "format": {"type": "text"}}
    return {
        **response,
        "text": text,
        "output": [it for it in response["output"] if it["type"] not in ITEMS_OF_OPENAI],
        "tools": [tool for tool in response["tools"] if tool["type"] not in TOOLS_OF_OPENAI],
    }
