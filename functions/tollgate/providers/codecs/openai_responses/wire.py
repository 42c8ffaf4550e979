"""The messages of OpenAI's Responses API: the events of a stream, and a whole response.

The models declare the fields that the gateway reads. The shapes are OpenAI's published schemas of
stream events and of a response (seen 2026-11-21).
"""

from typing import Final

from pydantic import BaseModel, ConfigDict, Field

from tollgate.core.json_value import JsonValue

# The separator between the summaries of one item in a text that joins all reasoning.
BETWEEN_SUMMARIES: Final = "\n\n"


class _Shape(BaseModel):
    model_config = ConfigDict(extra="allow", frozen=True)


class Annotation(_Shape):
    """An annotation of the text; the gateway reads only citations of web pages."""

    # The gateway writes citations in its own form, which has no room for unknown fields.
    model_config = ConfigDict(extra="ignore", frozen=True)

    type: str | None = None
    url: str | None = None
    title: str | None = None
    start_index: int | None = None
    end_index: int | None = None


class Content(_Shape):
    """A content part of a message or of reasoning, or a summary of reasoning."""

    type: str
    text: str | None = None
    refusal: str | None = None
    annotations: list[Annotation] | None = None
    logprobs: list[dict[str, JsonValue]] | None = None


class Action(_Shape):
    """The action of OpenAI's own search: `search`, `open_page` or `find_in_page`."""

    type: str | None = None


class Item(_Shape):
    """An output item: a message, reasoning, a call or a search."""

    type: str
    id: str | None = None
    call_id: str | None = None
    name: str | None = None
    arguments: str | None = None
    input: str | None = None
    content: list[Content] | None = None
    summary: list[Content] | None = None
    encrypted_content: str | None = None
    action: Action | None = None


class IncompleteDetails(_Shape):
    reason: str | None = None


class Response(_Shape):
    """A response, complete or as generated so far."""

    id: str | None = None
    model: str | None = None
    object: str | None = None
    status: str | None = None
    service_tier: str | None = None
    output: list[Item] = Field(default=[])
    usage: dict[str, JsonValue] | None = None
    incomplete_details: IncompleteDetails | None = None
    error: JsonValue = None


class Event(_Shape):
    """One event of a stream; its type determines which fields it has."""

    type: str
    response: Response | None = None
    item: Item | None = None
    output_index: int = 0
    content_index: int = 0
    summary_index: int = 0
    delta: str | None = None
    logprobs: list[dict[str, JsonValue]] | None = None
    annotation: Annotation | None = None
    error: JsonValue = None
    code: str | None = None
    message: str | None = None
    param: str | None = None
