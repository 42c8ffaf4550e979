"""Models for content blocks in a Messages request.

https://platform.claude.com/docs/en/api/messages (2026-11-22) and Anthropic's published schema.
"""

from typing import Annotated, Any, Final, Literal

from pydantic import Discriminator, Field, Tag

from tollgate.ingress.shared.wire.request_model import (
    URL_LENGTH_MAX,
    CacheControl,
    Json,
    Name,
    String,
    Wire,
    by_field,
    by_shape,
    tag_of,
)

BLOCKS_MAX: Final = 4_096
_TITLE_LENGTH_MAX: Final = 500
# Blocks of an answer that the gateway reads, and blocks of users, which no answer has. All others
# are passed on, and only Anthropic's own models accept them.
_READ: Final = frozenset(
    {
        "<document>",
        "<image>",
        "<redacted_thinking>",
        "<search_result>",
        "<text>",
        "<thinking>",
        "<tool_result>",
        "<tool_use>",
    }
)

_Type = Annotated[str, Field(max_length=255)]


class Base64Source(Wire):
    """Base64 content."""

    type: Literal["base64"]
    media_type: _Type
    data: Annotated[str, Field(min_length=1)]


class UrlSource(Wire):
    """Content at an http(s) URL."""

    type: Literal["url"]
    url: Annotated[str, Field(min_length=1, max_length=URL_LENGTH_MAX)]


class FileSource(Wire):
    """Content of an uploaded file."""

    type: Literal["file"]
    file_id: Annotated[str, Field(min_length=1, max_length=256)]


class PlainTextSource(Wire):
    """A document sent as plain text."""

    type: Literal["text"]
    media_type: Literal["text/plain"] = "text/plain"
    data: Annotated[str, Field(min_length=1)]


class Block(Wire):
    """The base class of blocks that can have a cache mark."""

    cache_control: CacheControl | None = None


class TextBlock(Block):
    """Text."""

    type: Literal["text"]
    text: str
    citations: list[Any] | None = Field(default=None, description="Has no effect.")


ImageSource = Annotated[
    Annotated[Base64Source, Tag("<base64>")]
    | Annotated[UrlSource, Tag("<url>")]
    | Annotated[FileSource, Tag("<file>")],
    by_field("type", "base64", "url", "file"),
]


class ImageBlock(Block):
    """An image."""

    type: Literal["image"]
    source: ImageSource


ContentSourceBlock = Annotated[
    Annotated[TextBlock, Tag("<text>")] | Annotated[ImageBlock, Tag("<image>")],
    by_field("type", "text", "image"),
]
_Shape: Final = by_shape("a string or an array of blocks")


class ContentSource(Wire):
    """A document sent as content blocks."""

    type: Literal["content"]
    content: Annotated[
        String
        | Annotated[
            list[ContentSourceBlock], Field(min_length=1, max_length=BLOCKS_MAX), Tag("<array>")
        ],
        _Shape,
    ]


DocumentSource = Annotated[
    Annotated[Base64Source, Tag("<base64>")]
    | Annotated[UrlSource, Tag("<url>")]
    | Annotated[FileSource, Tag("<file>")]
    | Annotated[PlainTextSource, Tag("<text>")]
    | Annotated[ContentSource, Tag("<content>")],
    by_field("type", "base64", "url", "file", "text", "content"),
]


class DocumentBlock(Block):
    """A document for the model to read."""

    type: Literal["document"]
    source: DocumentSource
    title: Annotated[str, Field(max_length=_TITLE_LENGTH_MAX)] | None = None
    context: str | None = None
    citations: Json | None = Field(default=None, description="Has no effect.")


class SearchResultBlock(Block):
    """A search result from the caller's own search."""

    type: Literal["search_result"]
    source: str
    title: str
    content: Annotated[list[TextBlock], Field(min_length=1, max_length=BLOCKS_MAX)]
    citations: Json | None = Field(default=None, description="Has no effect.")


class ThinkingBlock(Wire):
    """Reasoning from an earlier answer, with its signature."""

    type: Literal["thinking"]
    thinking: str
    signature: str = ""
    format: Name | None = Field(
        default=None,
        description="The signer, as in `reasoning_details`, of reasoning from chat completions; "
        "`signature`, `data` and `id` are then copied from the detail, too.",
    )
    data: str | None = None
    id: str | None = None


class RedactedThinkingBlock(Wire):
    """Encrypted reasoning that only the model's maker can read."""

    type: Literal["redacted_thinking"]
    data: Annotated[str, Field(min_length=1)]


class ToolUseBlock(Block):
    """A tool call from an earlier answer."""

    type: Literal["tool_use"]
    id: Annotated[str, Field(min_length=1)]
    name: Name
    input: Json


class ToolReferenceBlock(Block):
    """The name of a tool that a tool search found."""

    type: Literal["tool_reference"]
    tool_name: Name


ResultBlock = Annotated[
    Annotated[TextBlock, Tag("<text>")]
    | Annotated[ImageBlock, Tag("<image>")]
    | Annotated[DocumentBlock, Tag("<document>")]
    | Annotated[SearchResultBlock, Tag("<search_result>")]
    | Annotated[ToolReferenceBlock, Tag("<tool_reference>")],
    by_field("type", "text", "image", "document", "search_result", "tool_reference"),
]


class ToolResultBlock(Block):
    """The result of a tool call."""

    type: Literal["tool_result"]
    tool_use_id: Annotated[str, Field(min_length=1)]
    content: (
        Annotated[
            String | Annotated[list[ResultBlock], Field(max_length=BLOCKS_MAX), Tag("<array>")],
            _Shape,
        ]
        | None
    ) = None
    is_error: bool | None = None


class OwnBlock(Wire):
    """A block for a tool that Anthropic ran, or of unknown kind; send it back unchanged."""

    type: _Type


def _assistant_type(value: object) -> str | None:
    """Return the union tag of a block; blocks that the gateway does not read share one tag."""
    tag = tag_of(value, "type", "<text>")
    return tag if tag is None or tag in _READ else "<own>"


UserBlock = Annotated[
    Annotated[TextBlock, Tag("<text>")]
    | Annotated[ImageBlock, Tag("<image>")]
    | Annotated[DocumentBlock, Tag("<document>")]
    | Annotated[SearchResultBlock, Tag("<search_result>")]
    | Annotated[ToolResultBlock, Tag("<tool_result>")],
    by_field("type", "text", "image", "document", "search_result", "tool_result"),
]
AssistantBlock = Annotated[
    Annotated[TextBlock, Tag("<text>")]
    | Annotated[ThinkingBlock, Tag("<thinking>")]
    | Annotated[RedactedThinkingBlock, Tag("<redacted_thinking>")]
    | Annotated[ToolUseBlock, Tag("<tool_use>")]
    | Annotated[OwnBlock, Tag("<own>")],
    Discriminator(
        _assistant_type,
        custom_error_type="unknown_type",
        custom_error_message="must be 'text', 'thinking', 'redacted_thinking', 'tool_use' or "
        "the block type of a tool that Anthropic ran",
    ),
]
