"""Parses the messages of a Messages request into core messages."""

from collections.abc import Iterator
from typing import Final, assert_never

from msgspec.structs import replace

from tollgate.core.content import (
    CacheMark,
    Document,
    Image,
    InlineMedia,
    MediaSource,
    ResultContent,
    Text,
    ToolCall,
)
from tollgate.core.files.media_types import kind_of
from tollgate.core.request import (
    AssistantMessage,
    Message,
    SystemMessage,
    ToolMessage,
    UserMessage,
)
from tollgate.ingress.messages.answers import AnswerRounds
from tollgate.ingress.messages.wire import blocks
from tollgate.ingress.messages.wire import request as wire
from tollgate.ingress.shared.media import (
    WORDS,
    MediaCount,
    field_refusal,
    parse_address,
    parse_cache_mark,
    parse_file_id,
    parse_inline,
)
from tollgate.ingress.shared.wire.request_model import unknown_of

_Media = blocks.ImageBlock | blocks.DocumentBlock
_TEXT_TYPE: Final = "text/plain"


def parse_turns(request: wire.PromptFields) -> tuple[Message, ...]:
    """Parse the system prompt and all messages; raise RequestError with the field at fault."""
    turns = _Turns()
    if request.system:
        turns.add_system(request.system)
    for number, message in enumerate(request.messages):
        turns.add(message, f"messages[{number}]")
    mark = parse_cache_mark(request.cache_control)
    return tuple(turns.messages if mark is None else _mark_last(turns.messages, mark))


class _Turns:
    """Collects the messages, and the ids of calls without a result."""

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self._count = MediaCount()
        self._open_calls: set[str] = set()

    def add_system(self, content: str | list[blocks.TextBlock]) -> None:
        if content:
            self.messages.append(SystemMessage(content=tuple(_texts(content))))

    def add(self, message: wire.Message, path: str) -> None:
        match message:
            case wire.SystemMessage():
                self.add_system(message.content)
            case wire.AssistantMessage():
                self._add_answer(message, path)
            case wire.UserMessage(content=str(text)):
                native = unknown_of(message)
                self.messages.append(UserMessage(content=(Text(text=text),), native=native))
            case wire.UserMessage(content=list(content)):
                self._add_user(content, path)
                self._add_unknown(message)
            case _:
                raise TypeError(f"unexpected message type {type(message).__name__}")

    def _add_user(self, content: list[blocks.UserBlock], path: str) -> None:
        """Add a user message for content, and a separate message for each tool result."""
        contents: list[Text | Image | Document] = []
        for number, block in enumerate(content):
            block_path = f"{path}.content[{number}]"
            if not isinstance(block, blocks.ToolResultBlock):
                contents += self._content(block, block_path)
                continue
            if contents:
                self.messages.append(UserMessage(content=tuple(contents)))
                contents = []
            self._add_result(block, block_path)
        if contents:
            self.messages.append(UserMessage(content=tuple(contents)))

    def _add_unknown(self, message: wire.Message) -> None:
        """Add the unknown fields of a client's message to the last message parsed from it."""
        native = unknown_of(message)
        if native and self.messages and not isinstance(self.messages[-1], ToolMessage):
            self.messages[-1] = replace(self.messages[-1], native=native)

    def _add_result(self, block: blocks.ToolResultBlock, path: str) -> None:
        if block.tool_use_id not in self._open_calls:
            raise field_refusal(
                f"{path}.tool_use_id",
                "must be the id of an earlier `tool_use` block that has no result yet",
            )
        self._open_calls.remove(block.tool_use_id)
        content = block.content or ""
        parts: list[ResultContent] = (
            [Text(text=content)]
            if isinstance(content, str)
            else [
                part
                for number, inner in enumerate(content)
                for part in self._content(inner, f"{path}.content[{number}]")
            ]
        )
        mark = parse_cache_mark(block.cache_control)
        if mark is not None:
            *first, last = parts or [Text(text="")]
            parts = [*first, replace(last, cache=mark)]
        self.messages.append(
            ToolMessage(
                call_id=block.tool_use_id,
                content=tuple(parts),
                failed=bool(block.is_error),
                native=unknown_of(block),
            )
        )

    def _content(
        self, block: blocks.UserBlock | blocks.ResultBlock, path: str
    ) -> Iterator[Text | Image | Document]:
        match block:
            case blocks.TextBlock():
                yield _text(block)
            case blocks.SearchResultBlock():
                yield from _passage(block)
            case blocks.ToolReferenceBlock():
                mark = parse_cache_mark(block.cache_control)
                yield Text(text=f"The tool {block.tool_name} is available.", cache=mark)
            case blocks.ImageBlock():
                self._count.add(path)
                yield _image(block, path)
            case blocks.DocumentBlock():
                yield from self._document(block, path)
            case blocks.ToolResultBlock():
                raise TypeError("tool results cannot be nested")
            case _:
                assert_never(block)

    def _document(
        self, block: blocks.DocumentBlock, path: str
    ) -> Iterator[Text | Image | Document]:
        self._count.add(path)
        mark = parse_cache_mark(block.cache_control)
        if block.context:
            yield Text(text=block.context)
        match block.source:
            case blocks.PlainTextSource(data=text):
                yield _text_document(block.title, text, mark)
            case blocks.ContentSource(content=content):
                yield from self._document_of_blocks(block, content, f"{path}.source.content")
            case blocks.Base64Source() | blocks.UrlSource() | blocks.FileSource() as source:
                media = _source(source, f"{path}.source")
                if isinstance(media, InlineMedia) and kind_of(media.media_type) != "document":
                    raise field_refusal(f"{path}.source.data", f"must be {WORDS['document']}")
                yield Document(
                    source=media, filename=block.title, cache=mark, native=unknown_of(block)
                )
            case _:
                assert_never(block.source)

    def _document_of_blocks(
        self,
        block: blocks.DocumentBlock,
        content: str | list[blocks.ContentSourceBlock],
        path: str,
    ) -> Iterator[Text | Image | Document]:
        mark = parse_cache_mark(block.cache_control)
        if isinstance(content, str):
            yield _text_document(block.title, content, mark)
            return
        parts = [
            part
            for number, inner in enumerate(content)
            for part in self._content(inner, f"{path}[{number}]")
        ]
        yield from parts[:-1]
        yield replace(parts[-1], cache=mark or parts[-1].cache)

    def _add_answer(self, message: wire.AssistantMessage, path: str) -> None:
        if isinstance(message.content, str):
            native = unknown_of(message)
            text = Text(text=message.content)
            self.messages.append(AssistantMessage(content=(text,), native=native))
            return
        self.messages += AnswerRounds(message.content).parse(f"{path}.content")
        self._add_unknown(message)
        self._open_calls |= {
            block.id for block in message.content if isinstance(block, blocks.ToolUseBlock)
        }


def _texts(content: str | list[blocks.TextBlock]) -> Iterator[Text]:
    if isinstance(content, str):
        yield Text(text=content)
    else:
        yield from map(_text, content)


def _text(block: blocks.TextBlock) -> Text:
    mark = parse_cache_mark(block.cache_control)
    return Text(text=block.text, cache=mark, native=unknown_of(block))


def _passage(block: blocks.SearchResultBlock) -> Iterator[Text]:
    """Yield the text of a search result, preceded by its title and source."""
    yield Text(text=f"{block.title}\n{block.source}")
    yield from map(_text, block.content[:-1])
    last = _text(block.content[-1])
    yield replace(last, cache=parse_cache_mark(block.cache_control) or last.cache)


def _text_document(title: str | None, text: str, mark: CacheMark | None) -> Text:
    return Text(text=f"{title}\n\n{text}" if title else text, cache=mark)


def _image(block: blocks.ImageBlock, path: str) -> Image:
    media = _source(block.source, f"{path}.source")
    if isinstance(media, InlineMedia) and kind_of(media.media_type) != "image":
        raise field_refusal(f"{path}.source.data", f"must be {WORDS['image']}")
    mark = parse_cache_mark(block.cache_control)
    return Image(source=media, cache=mark, native=unknown_of(block))


def _source(
    source: blocks.Base64Source | blocks.UrlSource | blocks.FileSource, path: str
) -> MediaSource:
    match source:
        case blocks.Base64Source():
            return parse_inline(source.data, source.media_type, f"{path}.data")
        case blocks.UrlSource():
            return parse_address(source.url, f"{path}.url")
        case blocks.FileSource():
            return parse_file_id(source.file_id, path)
        case _:
            assert_never(source)


def _mark_last(messages: list[Message], mark: CacheMark) -> Iterator[Message]:
    """Yield the messages, with the cache mark on the last part that can have one."""
    if not messages:
        # Empty instructions do not produce a message.
        return
    yield from messages[:-1]
    last = messages[-1]
    content = list(last.content)
    for index in reversed(range(len(content))):
        part = content[index]
        if isinstance(part, Text | Image | Document | ToolCall):
            content[index] = replace(part, cache=part.cache or mark)
            break
    yield replace(last, content=tuple(content))
