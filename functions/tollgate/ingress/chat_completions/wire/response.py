"""Models for chat completions and their stream chunks, for the API description.

`ingress.chat_completions.render` writes replies without these models; tests check that replies
match.
https://platform.openai.com/docs/api-reference/chat/object (2026-08-21)
"""

from typing import Any, Final, Literal

from pydantic import BaseModel, Field

from tollgate.core.content import ServerToolId
from tollgate.ingress.shared.wire.reply_models import (
    Accounts,
    Answer,
    ErrorObject,
    PartialAccounts,
    Usage,
)

FinishReason = Literal["stop", "length", "tool_calls", "content_filter"]


_EXTRA_CONTENT: Final = Field(default=None, description="Send it back unchanged.")


class CalledFunction(Answer):
    """The function that the caller must run."""

    name: str
    arguments: str = Field(description="JSON text.")


class CalledTool(Answer):
    """A function call from the model."""

    id: str
    type: Literal["function"]
    function: CalledFunction
    extra_content: dict[str, Any] | None = _EXTRA_CONTENT


class CustomInput(Answer):
    """The tool that the caller must run, and its text input."""

    name: str
    input: str


class CalledCustomTool(Answer):
    """A call of a tool with text input."""

    id: str
    type: Literal["custom"]
    custom: CustomInput
    extra_content: dict[str, Any] | None = _EXTRA_CONTENT


class Position(Answer):
    """The position of reasoning: how much text and how many calls and runs precede it."""

    text: int = Field(description="Number of characters in `content`.")
    calls: int = Field(description="Number of entries in `tool_calls`.")
    runs: int | None = Field(default=None, description="Number of entries in `server_tool_calls`.")


class ReasoningDetail(Answer):
    """Reasoning from the model, in OpenRouter's form; send it back unchanged."""

    type: Literal["reasoning.text", "reasoning.summary", "reasoning.encrypted"]
    index: int
    text: str = ""
    summary: str | None = None
    format: str | None = Field(default=None, description="The signer of the reasoning.")
    id: str | None = None
    signature: str | None = None
    data: str | None = Field(default=None, description="Content that only the signer can read.")
    model: str | None = Field(
        default=None, description="The only model that accepts the reasoning, if there is just one."
    )
    after: Position | None = Field(default=None, description="Omitted if nothing precedes.")


class UrlCitation(Answer):
    """A source, and the range of `content` that cites it."""

    url: str = Field(description="Empty if the source has no address.")
    title: str
    start_index: int
    end_index: int


class Annotation(Answer):
    """A source that the content cites."""

    type: Literal["url_citation"]
    url_citation: UrlCitation


class AnswerImageUrl(Answer):
    """The URL of an image, usually a data URL."""

    url: str


class PageText(Answer):
    """The text of a page, which starts with the page number."""

    type: Literal["text"]
    text: str


class PagePicture(Answer):
    """The image of a page without text."""

    type: Literal["image_url"]
    image_url: AnswerImageUrl


class AnnotatedFile(Answer):
    """A document and the content that was read from it."""

    hash: str = Field(description="SHA-256 of the document's bytes.")
    name: str
    pages: int = Field(description="The number of pages in the document.")
    content: list[PageText | PagePicture]


class FileAnnotation(Answer):
    """A document that was read for the answer; if sent back, it is not read again."""

    type: Literal["file"]
    file: AnnotatedFile


class TopLogProb(BaseModel):
    """An alternative token; providers may add fields."""

    token: str
    logprob: float | None
    bytes: list[int] | None


class TokenLogProb(Answer):
    """A token and its log probability."""

    token: str
    logprob: float | None
    bytes: list[int] | None
    top_logprobs: list[TopLogProb]


class LogProbs(Answer):
    """Log probabilities for the tokens in the content or in the refusal."""

    content: list[TokenLogProb] | None
    refusal: list[TokenLogProb] | None


class AnswerImage(Answer):
    """An image that the model generated."""

    type: Literal["image_url"]
    image_url: AnswerImageUrl
    index: int
    extra_content: dict[str, Any] | None = Field(
        default=None, description="The provider's signature; send it back unchanged."
    )


class RunPosition(Answer):
    """The position of a run: how much text precedes it."""

    text: int = Field(description="Number of characters in `content`.")


class RunSource(Answer):
    """A web page that a run found or read."""

    url: str
    title: str
    published: str | None = None


class ServerToolCall(Answer):
    """A server tool run; send it back so that the model sees its result again."""

    index: int
    id: str
    type: Literal["server_tool"]
    name: ServerToolId
    arguments: str = Field(description="JSON text, as the model wrote it.")
    status: Literal["completed", "failed"]
    result: str = Field(description="The result text that the model received.")
    sources: list[RunSource] | None = None
    error: str | None = Field(default=None, description="The error code of a failed run.")
    after: RunPosition | None = Field(default=None, description="Omitted if nothing precedes.")


class ServerToolEvent(Answer):
    """The progress of a server tool run, if the caller requested events."""

    index: int
    id: str
    type: Literal["server_tool"]
    tool: ServerToolId
    status: Literal["started", "completed", "failed"]
    arguments: str | None = Field(default=None, description="JSON text; only when the run starts.")
    sources: list[RunSource] | None = None
    error: str | None = None


class ChoiceMessage(Answer):
    """The model's message."""

    role: Literal["assistant"]
    content: str | None
    refusal: str | None
    reasoning: str | None = None
    reasoning_content: str | None = Field(default=None, description="The same as `reasoning`.")
    reasoning_details: list[ReasoningDetail] | None = None
    annotations: list[Annotation | FileAnnotation] | None = None
    tool_calls: list[CalledTool | CalledCustomTool] | None = None
    images: list[AnswerImage] | None = None
    server_tool_calls: list[ServerToolCall] | None = None


class Choice(Answer):
    """An answer."""

    index: int
    message: ChoiceMessage
    logprobs: LogProbs | None = Field(description="Null if not known.")
    finish_reason: FinishReason
    native_finish_reason: str | None = Field(description="The provider's name for the reason.")


class ChatCompletion(Accounts):
    """A non-streamed reply."""

    id: str
    object: Literal["chat.completion"]
    created: int = Field(description="Unix time in seconds.")
    model: str = Field(description="The slug of the model that answered.")
    provider: str = Field(description="The display name of the provider that answered.")
    system_fingerprint: str | None = None
    service_tier: str | None = None
    episode_id: str
    choices: list[Choice]
    usage: Usage


class CalledFunctionDelta(Answer):
    """An addition to a call's arguments."""

    name: str | None = None
    arguments: str


class CustomInputDelta(Answer):
    """The next piece of a custom call's input text."""

    name: str | None = None
    input: str


class CalledToolDelta(Answer):
    """An addition to a call, in `function` or `custom`; id, type and name are sent once."""

    index: int
    id: str | None = None
    type: Literal["function", "custom"] | None = None
    function: CalledFunctionDelta | None = None
    custom: CustomInputDelta | None = None
    extra_content: dict[str, Any] | None = None


class AnnotationDelta(Annotation):
    """An annotation with its index in the list."""

    index: int


class FileAnnotationDelta(FileAnnotation):
    """A document's annotation with its index in the list."""

    index: int


class Delta(Answer):
    """Content that was added since the previous chunk."""

    role: Literal["assistant"] | None = None
    content: str | None = None
    refusal: str | None = None
    reasoning: str | None = None
    reasoning_content: str | None = None
    reasoning_details: list[ReasoningDetail] | None = None
    annotations: list[AnnotationDelta | FileAnnotationDelta] | None = None
    tool_calls: list[CalledToolDelta] | None = None
    server_tool_calls: list[ServerToolCall] | None = None
    server_tool_events: list[ServerToolEvent] | None = None


class ChunkChoice(Answer):
    """An addition to an answer."""

    index: int
    delta: Delta
    logprobs: LogProbs | None = None
    finish_reason: FinishReason | None
    native_finish_reason: str | None = None


class _FrameHead(Answer):
    id: str
    object: Literal["chat.completion.chunk"]
    created: int = Field(description="Unix time in seconds.")
    model: str = Field(description="The slug of the model that answered.")
    provider: str | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    episode_id: str


class ChatCompletionChunk(PartialAccounts, _FrameHead):
    """A frame in a stream; the last frame has usage and cost, but no choices."""

    choices: list[ChunkChoice]
    usage: Usage | None = None


class ChatCompletionFailure(Accounts, _FrameHead):
    """The last frame in a failed stream: an error and the usage so far, without choices."""

    error: ErrorObject
    usage: Usage
