"""Estimates the size of a prompt in tokens, with lower and upper bounds, without a tokenizer."""

from collections.abc import Iterable, Iterator
from typing import Final, Self, assert_never

from msgspec import Struct
from msgspec.structs import replace
from pydantic_core import to_json

from tollgate.core.content import (
    Audio,
    Document,
    FileReference,
    Image,
    InlineMedia,
    MadeImage,
    MediaUrl,
    Reasoning,
    Refusal,
    Text,
    ToolCall,
)
from tollgate.core.files.media_types import PDF
from tollgate.core.request import GenerationRequest, Message, SchemaOutput
from tollgate.core.work.base import InputWork, Work
from tollgate.core.work.pictures import READ_TOKENS_LIKELY, READ_TOKENS_MAX

# The upper bound must hold even for dense text, the estimate is for English, and the lower bound
# must not refuse a prompt that might fit.
BYTES_PER_TOKEN_MIN: Final = 2
BYTES_PER_TOKEN_TYPICAL: Final = 4
_BYTES_PER_TOKEN_MAX: Final = 6
# Tokens for the role and the delimiters of a message.
_MESSAGE_TOKENS: Final = 4
_INPUT_MARK_TOKENS: Final = 8
# A PDF page has about 60 KB (80 KB as base64) and 2,000 tokens.
_FILE_CHARACTERS_PER_TOKEN_TYPICAL: Final = 40
# A file given by URL is estimated at ten pages. The maximum is what providers read: 100 pages of
# 3,000 tokens (Anthropic, Bedrock), or 1,000 pages of 258 (Gemini).
_FILE_URL_TOKENS_TYPICAL: Final = 20_000
_FILE_URL_TOKENS_MAX: Final = 300_000

_Content = Text | Image | Audio | Document | Reasoning | Refusal | ToolCall | MadeImage


class PromptSize(Struct, frozen=True, kw_only=True):
    """The number of tokens in a prompt: lower bound, estimate and upper bound."""

    least: int
    estimate: int
    most: int

    @classmethod
    def of_each(cls, request: Work) -> tuple[Self, ...]:
        """Measure each conversation in a request, or all of its inputs together.

        The size of one conversation is the whole body without the texts of the other conversations,
        because the rest of the body belongs to all of them.
        """
        if isinstance(request, InputWork):
            return (cls.of_inputs(request),)
        if not request.further:
            return (cls.of(request),)
        texts = [sum(map(_size, _all_texts(messages))) for messages in request.conversations]
        return tuple(
            replace(
                cls.of(
                    replace(
                        request,
                        messages=messages,
                        further=(),
                        size_bytes=max(0, request.size_bytes - sum(texts) + own),
                    )
                ),
                least=own // _BYTES_PER_TOKEN_MAX,
            )
            for messages, own in zip(request.conversations, texts, strict=True)
        )

    @classmethod
    def of_inputs(cls, work: InputWork) -> Self:
        """Measure inputs that are processed separately.

        `least` is for the largest input; the other sizes are sums over all inputs. A string has at
        most one token per byte, plus a few delimiters.
        """
        texts, tokens = work.bytes_per_input, work.tokens_per_input
        return cls(
            least=max(max(texts, default=0) // _BYTES_PER_TOKEN_MAX, max(tokens, default=0)),
            estimate=sum(-(-size // BYTES_PER_TOKEN_TYPICAL) for size in texts)
            + sum(tokens)
            + work.units.media_tokens,
            most=sum(texts)
            + sum(tokens)
            + work.units_max.media_tokens
            + _INPUT_MARK_TOKENS * work.inputs,
        )

    @classmethod
    def of(cls, request: GenerationRequest) -> Self:
        """Measure one conversation: the bounds come from the size of the body, and the estimate
        from the text.
        """
        parts = [part for message in request.messages for part in message.content]
        sources = [part.source for part in parts if isinstance(part, Audio | Document)]
        images = sum(isinstance(part, Image | MadeImage) for part in parts)
        file_urls = sum(isinstance(source, MediaUrl) for source in sources)
        files = sum(len(source.base64) for source in sources if isinstance(source, InlineMedia))
        references = [source for source in sources if isinstance(source, FileReference)]
        pictures = sum(
            len(part.source.base64)
            for part in parts
            if isinstance(part, Image | MadeImage) and isinstance(part.source, InlineMedia)
        )
        body = max(0, request.size_bytes - pictures - files)
        return cls(
            least=body // _BYTES_PER_TOKEN_MAX,
            estimate=-(-_text_bytes(request) // BYTES_PER_TOKEN_TYPICAL)
            + _MESSAGE_TOKENS * len(request.messages)
            + images * READ_TOKENS_LIKELY
            + files // _FILE_CHARACTERS_PER_TOKEN_TYPICAL
            + file_urls * _FILE_URL_TOKENS_TYPICAL
            + sum(map(_named_estimate, references)),
            most=-(-(body + files) // BYTES_PER_TOKEN_MIN)
            + images * READ_TOKENS_MAX
            + file_urls * _FILE_URL_TOKENS_MAX
            + sum(map(_named_most, references)),
        )


def _named_estimate(file: FileReference) -> int:
    """Estimate the number of tokens in an uploaded file.

    A PDF counts at most as much as a file given by URL, even if it is large because of its images.
    A file that has not been looked up yet counts as a file given by URL.
    """
    if file.size_bytes is None:
        return _FILE_URL_TOKENS_TYPICAL
    tokens = _base64_length(file.size_bytes) // _FILE_CHARACTERS_PER_TOKEN_TYPICAL
    return min(tokens, _FILE_URL_TOKENS_MAX) if file.media_type == PDF else tokens


def estimate_tokens(messages: tuple[Message, ...]) -> int:
    """Estimate the number of text tokens that messages add to a prompt."""
    text = sum(map(_size, _all_texts(messages)))
    return -(-text // BYTES_PER_TOKEN_TYPICAL) + _MESSAGE_TOKENS * len(messages)


def _named_most(file: FileReference) -> int:
    """Return the maximum number of tokens in an uploaded file."""
    if file.size_bytes is None:
        return _FILE_URL_TOKENS_MAX
    return -(-_base64_length(file.size_bytes) // BYTES_PER_TOKEN_MIN)


def _base64_length(size_bytes: int) -> int:
    return -(-size_bytes // 3) * 4


def _text_bytes(request: GenerationRequest) -> int:
    """Return the size of all text that the model gets: messages, tools and the output schema."""
    schema = request.output_format.schema if isinstance(request.output_format, SchemaOutput) else {}
    json_values = [tool.parameters for tool in request.tools] + ([schema] if schema else [])
    texts = [*_all_texts(request.messages), request.suffix or ""]
    texts += [text for tool in request.tools for text in (tool.name, tool.description or "")]
    texts += [
        tool.text.grammar.definition
        for tool in request.tools
        if tool.text is not None and tool.text.grammar is not None
    ]
    return sum(map(_size, texts)) + sum(len(to_json(value)) for value in json_values)


def _all_texts(messages: tuple[Message, ...]) -> Iterator[str]:
    for message in messages:
        yield from _texts(message)


def _texts(message: Message) -> Iterable[str]:
    content: Iterable[_Content] = message.content
    for part in content:
        match part:
            case Text(text=text) | Reasoning(text=text) | Refusal(text=text):
                yield text
            case ToolCall(name=name, arguments=arguments):
                yield from (name, arguments)
            case Image() | MadeImage() | Audio() | Document():
                pass
            case _:
                assert_never(part)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
