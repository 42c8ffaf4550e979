"""Models of the chat completion and its stream chunks, for the published schema.

`ingress.chat_completions.render` writes the answers without these models; tests check that both
agree.
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


_EXTRA_CONTENT: Final = Field(default=None, description="Send it back untouched.")


class CalledFunction(Answer):
    """The function that the caller is to run."""

    name: str
    arguments: str = Field(description="JSON text.")


class CalledTool(Answer):
    """A tool call of the model."""

    id: str
    type: Literal["function"]
    function: CalledFunction
    extra_content: dict[str, Any] | None = _EXTRA_CONTENT


class CustomInput(Answer):
    """The tool that the caller is to run, and its free text."""

    name: str
    input: str


class CalledCustomTool(Answer):
    """A call of a tool that takes free text."""

    id: str
    type: Literal["custom"]
    custom: CustomInput
    extra_content: dict[str, Any] | None = _EXTRA_CONTENT


class Position(Answer):
    """The position of a piece of reasoning: the text, calls and runs that precede it."""

    text: int = Field(description="Characters of `content`.")
    calls: int = Field(description="Entries of `tool_calls`.")
    runs: int | None = Field(default=None, description="Entries of `server_tool_calls`.")


class ReasoningDetail(Answer):
    """A piece of the model's reasoning, in OpenRouter's form; send it back untouched."""

    type: Literal["reasoning.text", "reasoning.summary", "reasoning.encrypted"]
    index: int
    text: str = ""
    summary: str | None = None
    format: str | None = Field(default=None, description="The signer of the reasoning.")
    id: str | None = None
    signature: str | None = None
    data: str | None = Field(default=None, description="Content that only the signer can read.")
    model: str | None = Field(
        default=None, description="The model that must get the reasoning, if only one may."
    )
    after: Position | None = Field(default=None, description="Null at the beginning.")


class UrlCitation(Answer):
    """A source, and the characters of `content` that cite it."""

    url: str = Field(description="Empty if the source has no address.")
    title: str
    start_index: int
    end_index: int


class Annotation(Answer):
    """A source of the content."""

    type: Literal["url_citation"]
    url_citation: UrlCitation


class AnswerImageUrl(Answer):
    """The URL of a picture, usually a data: URL with the picture's bytes."""

    url: str


class PageText(Answer):
    """The text of a page, which begins with the page's number."""

    type: Literal["text"]
    text: str


class PagePicture(Answer):
    """The picture of a page without text."""

    type: Literal["image_url"]
    image_url: AnswerImageUrl


class AnnotatedFile(Answer):
    """A document with the content that was read."""

    hash: str = Field(description="SHA-256 of the document's bytes.")
    name: str
    pages: int = Field(description="The number of pages of the document.")
    content: list[PageText | PagePicture]


class FileAnnotation(Answer):
    """A document that was read for the answer; send it back so that it is not read again."""

    type: Literal["file"]
    file: AnnotatedFile


class TopLogProb(BaseModel):
    """A likely alternative token; providers may add fields."""

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
    """Log probabilities of the tokens of the content, or of the refusal."""

    content: list[TokenLogProb] | None
    refusal: list[TokenLogProb] | None


class AnswerImage(Answer):
    """A picture that the model made."""

    type: Literal["image_url"]
    image_url: AnswerImageUrl
    index: int
    extra_content: dict[str, Any] | None = Field(
        default=None, description="The provider's signature; send it back untouched."
    )


class RunPosition(Answer):
    """The position of a run: the text that precedes it."""

    text: int = Field(description="Characters of `content`.")


class RunSource(Answer):
    """A page that a run found or read."""

    url: str
    title: str
    published: str | None = None


class ServerToolCall(Answer):
    """A run of one of the gateway's tools; send it back so that the model sees its result again."""

    index: int
    id: str
    type: Literal["server_tool"]
    name: ServerToolId
    arguments: str = Field(description="JSON text, as the model wrote it.")
    status: Literal["completed", "failed"]
    result: str = Field(description="The text that the model got.")
    sources: list[RunSource] | None = None
    error: str | None = Field(default=None, description="The error code of a failed run.")
    after: RunPosition | None = Field(default=None, description="Null at the beginning.")


class ServerToolEvent(Answer):
    """The progress of a run, for callers who request events."""

    index: int
    id: str
    type: Literal["server_tool"]
    tool: ServerToolId
    status: Literal["started", "completed", "failed"]
    arguments: str | None = Field(default=None, description="JSON text, when a run starts.")
    sources: list[RunSource] | None = None
    error: str | None = None


class ChoiceMessage(Answer):
    """The message of the model."""

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
    """One answer."""

    index: int
    message: ChoiceMessage
    logprobs: LogProbs | None = Field(description="Null if not known.")
    finish_reason: FinishReason
    native_finish_reason: str | None = Field(description="The reason as the provider names it.")


class ChatCompletion(Accounts):
    """A whole answer."""

    id: str
    object: Literal["chat.completion"]
    created: int = Field(description="Unix time in seconds.")
    model: str = Field(description="The slug of the model that served.")
    provider: str = Field(description="The display name of the provider that served.")
    system_fingerprint: str | None = None
    service_tier: str | None = None
    episode_id: str
    choices: list[Choice]
    usage: Usage


class CalledFunctionDelta(Answer):
    """The next piece of a call's arguments."""

    name: str | None = None
    arguments: str


class CustomInputDelta(Answer):
    """The next piece of a call's free text."""

    name: str | None = None
    input: str


class CalledToolDelta(Answer):
    """The next piece of a call, in `function` or `custom`; id, type and name come once."""

    index: int
    id: str | None = None
    type: Literal["function", "custom"] | None = None
    function: CalledFunctionDelta | None = None
    custom: CustomInputDelta | None = None
    extra_content: dict[str, Any] | None = None


class AnnotationDelta(Annotation):
    """An annotation, and its index in the list."""

    index: int


class FileAnnotationDelta(FileAnnotation):
    """An annotation on a document, and its index in the list."""

    index: int


class Delta(Answer):
    """The text and the calls since the previous chunk."""

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
    """The next piece of one answer."""

    index: int
    delta: Delta
    logprobs: LogProbs | None = None
    finish_reason: FinishReason | None
    native_finish_reason: str | None = None


class _FrameHead(Answer):
    id: str
    object: Literal["chat.completion.chunk"]
    created: int = Field(description="Unix time in seconds.")
    model: str = Field(description="The slug of the model that served.")
    provider: str | None = None
    system_fingerprint: str | None = None
    service_tier: str | None = None
    episode_id: str


class ChatCompletionChunk(PartialAccounts, _FrameHead):
    """One frame of a stream; the last frame has usage and accounts, and no choices."""

    choices: list[ChunkChoice]
    usage: Usage | None = None


class ChatCompletionFailure(Accounts, _FrameHead):
    """The last frame of a failed stream: an error and the usage so far, without choices."""

    error: ErrorObject
    usage: Usage
