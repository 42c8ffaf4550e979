"""Models for a response, its items and its error, for the API description.

`ingress.responses.render` writes replies without these models; tests check that replies match.
https://platform.openai.com/docs/api-reference/responses/object (2026-11-22)
"""

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from tollgate.core.content import ServerToolId
from tollgate.ingress.shared.wire.reply_models import (
    Answer,
    ErrorEnvelope,
    ErrorObject,
    InputTokensDetails,
    LimitObject,
    OutputTokensDetails,
    PartialAccounts,
)

ItemStatus = Literal["in_progress", "completed", "incomplete"]


class UrlSource(Answer):
    """A source, and the range of text that cites it."""

    type: Literal["url_citation"]
    url: str
    title: str
    start_index: int
    end_index: int


class OutputText(Answer):
    """Text in an answer."""

    type: Literal["output_text"]
    text: str
    annotations: list[UrlSource]
    logprobs: list[dict[str, Any]]


class OutputRefusal(Answer):
    """The model's refusal."""

    type: Literal["refusal"]
    refusal: str


class OutputMessage(Answer):
    """A message from the model."""

    type: Literal["message"]
    id: str
    status: ItemStatus
    role: Literal["assistant"]
    content: list[Annotated[OutputText | OutputRefusal, Field(discriminator="type")]]


class SummaryText(Answer):
    """A reasoning summary."""

    type: Literal["summary_text"]
    text: str


class ReasoningText(Answer):
    """Reasoning text."""

    type: Literal["reasoning_text"]
    text: str


class OutputReasoning(Answer):
    """Reasoning from the model; send it back unchanged."""

    type: Literal["reasoning"]
    id: str
    status: ItemStatus
    summary: list[SummaryText]
    content: list[ReasoningText] | None = None
    encrypted_content: str | None = None


class _OutputCall(Answer):
    id: str
    status: ItemStatus
    call_id: str
    name: str
    namespace: str | None = None


class OutputFunctionCall(_OutputCall):
    """A function call."""

    type: Literal["function_call"]
    arguments: str


class OutputCustomToolCall(_OutputCall):
    """A call of a tool with text input."""

    type: Literal["custom_tool_call"]
    input: str


class OutputImage(Answer):
    """An image that the model generated; `result` is base64 or a URL."""

    type: Literal["image_generation_call"]
    id: str
    status: Literal["in_progress", "completed"]
    result: str | None


class SearchSource(Answer):
    """A web page that a search found."""

    type: Literal["url"]
    url: str


class SearchAction(Answer):
    """The search that a web search tool ran."""

    type: Literal["search"]
    query: str
    queries: list[str]
    sources: list[SearchSource] | None = None


class OpenPageAction(Answer):
    """The web page that a run read."""

    type: Literal["open_page"]
    url: str | None


class OutputSearch(Answer):
    """A web search, or the reading of a web page; send it back unchanged."""

    type: Literal["web_search_call"]
    id: str
    status: Literal["in_progress", "completed", "failed"]
    action: Annotated[SearchAction | OpenPageAction, Field(discriminator="type")]
    encrypted_content: str | None = None


class OutputToolRun(Answer):
    """A run of another server tool; send it back unchanged."""

    type: Literal["mcp_call"]
    id: str
    status: Literal["in_progress", "completed", "failed"]
    server_label: Literal["tollgate"]
    name: ServerToolId
    arguments: str
    output: str | None
    error: None


class OutputCompaction(Answer):
    """The sealed conversation so far; send this item back unchanged in its place."""

    type: Literal["compaction"]
    id: str
    encrypted_content: str


OutputItemModel = Annotated[
    OutputMessage
    | OutputReasoning
    | OutputFunctionCall
    | OutputCustomToolCall
    | OutputImage
    | OutputSearch
    | OutputToolRun
    | OutputCompaction,
    Field(discriminator="type"),
]


class ResponseUsage(Answer):
    """Usage and cost."""

    input_tokens: int
    input_tokens_details: InputTokensDetails
    output_tokens: int
    output_tokens_details: OutputTokensDetails
    total_tokens: int
    cost: float = Field(description="US dollars, exact to a billionth.")


class ResponseFailure(Answer):
    """The reason why a response failed, with OpenAI's and Tollgate's code."""

    code: str
    message: str
    tollgate_code: str
    limit: LimitObject | None = Field(
        default=None, description="The key, member or team limit that was reached."
    )


class IncompleteReason(Answer):
    """The reason why a response was truncated."""

    reason: Literal["max_output_tokens", "content_filter"]


class RepeatedFields(Answer):
    """Request fields; a number that was not sent to the provider has its default."""

    frequency_penalty: float
    instructions: str | None
    max_output_tokens: int | None
    max_tool_calls: int | None
    metadata: dict[str, str]
    parallel_tool_calls: bool
    presence_penalty: float
    previous_response_id: str | None
    prompt_cache_key: str | None
    reasoning: dict[str, Any]
    safety_identifier: str | None
    store: bool = Field(description="True if the response is stored and can be read again.")
    temperature: float
    text: dict[str, Any]
    tool_choice: str | dict[str, Any]
    tools: list[dict[str, Any]] = Field(description="The tools that the caller runs.")
    top_logprobs: int
    top_p: float
    truncation: str
    user: str | None


class ResponseObject(RepeatedFields, PartialAccounts):
    """A response in any state.

    The Open Responses schema requires every field of a response except the accounts (C74).
    """

    id: str
    object: Literal["response"]
    created_at: int
    completed_at: int | None
    status: Literal["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]
    background: bool
    error: ResponseFailure | None
    incomplete_details: IncompleteReason | None
    model: str = Field(description="The slug of the model that answered.")
    output: list[OutputItemModel]
    service_tier: str = Field(description="`auto` until the provider states the tier.")
    usage: ResponseUsage | None


class KeptMessage(Answer):
    """An unchanged message of the user."""

    type: Literal["message"]
    id: str
    status: ItemStatus
    role: Literal["user"]
    content: list[dict[str, Any]]


class CompactedResponse(PartialAccounts):
    """A compacted conversation; send `output` unchanged as `input` of the next request."""

    id: str
    object: Literal["response.compaction"]
    created_at: int
    model: str = Field(description="The slug of the model that wrote the record.")
    output: list[Annotated[KeptMessage | OutputCompaction, Field(discriminator="type")]]
    usage: ResponseUsage


class LimitedErrorObject(ErrorObject):
    """An error, with the Unix time at which the reached limit resets."""

    resets_at: int | None = None


class ResponsesErrorEnvelope(ErrorEnvelope):
    """The body of every error reply."""

    error: LimitedErrorObject


class ResponseInputTokens(BaseModel):
    """The number of tokens in a prompt."""

    object: Literal["response.input_tokens"]
    input_tokens: int
