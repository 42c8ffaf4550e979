"""The decoder for OpenAI-like streams."""

import re
from collections.abc import Generator, Hashable, Iterable, Iterator, Sequence
from itertools import chain, takewhile
from typing import Final, assert_never

from typing_extensions import override

from tollgate.core.content import InlineMedia, MediaUrl, Reasoning, Refusal, Text
from tollgate.core.events import (
    Citation,
    Ended,
    Grouped,
    LogProbs,
    Started,
    StreamEvent,
    UsageReported,
)
from tollgate.core.reasoning_details import text_of
from tollgate.providers.codecs.openai_chat.chunk_pattern import ChunkPattern
from tollgate.providers.codecs.openai_chat.notes import Citations, log_probs
from tollgate.providers.codecs.openai_chat.thoughts import OpenThought, open_thought
from tollgate.providers.codecs.openai_chat.tool_calls import OrphanPiece, ToolCalls
from tollgate.providers.codecs.openai_chat.unknown import UnknownOfChunks
from tollgate.providers.codecs.openai_chat.wire import (
    CHUNKS,
    Choice,
    Chunk,
    Delta,
    ReferenceItem,
    TextItem,
    ThinkingItem,
)
from tollgate.providers.ports.base import Frame, ReadDecoder
from tollgate.providers.shared.openai_choices import finish_of
from tollgate.providers.shared.openai_errors import parse_openai_stream_error
from tollgate.providers.shared.openai_usage import openai_usage_of
from tollgate.providers.shared.parts import OpenPart, Parts
from tollgate.providers.shared.refusals import UNREADABLE, early_close_error, malformed_error

_TextKind = type[Text] | type[Reasoning] | type[Refusal]
_TEXT: Final = "text"
_NO_NAME: Final = "message"
_INLINE_IMAGE: Final = re.compile(r"data:(image/[a-z0-9.+-]{1,64});base64")


# Minimum number of frames that are decoded together, and maximum number of such groups per read.
_TOGETHER_MIN: Final = 4
_GROUPS_MAX: Final = 4


class ChatDecoder(ReadDecoder):
    """Decodes one stream.

    `Ended` comes last, because usage, an error or another finish reason may follow the first one.
    """

    def __init__(
        self, provider: str, *, signer: str | None = None, passes_unknown: bool = False
    ) -> None:
        self._provider = provider
        self._unknown = UnknownOfChunks() if passes_unknown else None
        self._started = False
        # Keyed by _TEXT for the text part in progress, and by number for each tool call.
        self._parts = Parts[Hashable, OpenPart]()
        self._calls = ToolCalls(self._parts)
        self._pattern = ChunkPattern()
        self._signer = signer
        self._citations = Citations()
        self._notes: list[Citation | LogProbs] = []
        self._finish: str | None = None
        self._done = False

    @override
    def feed(self, frame: Frame) -> Iterable[StreamEvent]:
        """Return the events of one SSE event, or of the whole reply of a server without streams."""
        opened = self._open_text()
        # A fast path, because most chunks add to the open text.
        if opened is not None and frame.event != "error":
            text = self._pattern.find_text(frame.data)
            if text:
                return (opened.add(text),)
        data = frame.data.strip()
        if data == b"[DONE]":
            self._done = True
            return ()
        if not data:
            return ()
        chunk = self._parsed(data, frame.event)
        unknown = () if self._unknown is None else (*self._unknown.read(data),)
        if opened is not None:
            text = chunk.plain_text
            if text:
                # The chunks of a pattern repeat its unknown fields, which are passed once.
                self._pattern.learn(data, text)
                return (*unknown, opened.add(text))
            if text is not None:
                return unknown
        return chain(unknown, self._chunk(chunk, data))

    @override
    def feed_read(self, frames: Sequence[Frame]) -> Iterator[Grouped]:
        """Yield the events of frames that arrived together, and join the texts of plain chunks."""
        place = groups = 0
        while place < len(frames):
            left = len(frames) - place
            if self._pattern.is_known and left >= _TOGETHER_MIN and groups < _GROUPS_MAX:
                opened = self._open_text()
                if opened is not None:
                    groups += 1
                    texts = self._pattern.find_texts(_unnamed(frames[place:]))
                    place += len(texts)
                    if plain_texts := [text for text in texts if text]:
                        yield opened.add_together(plain_texts)
                    if place == len(frames):
                        return
            yield from self.feed(frames[place])
            place += 1

    def _open_text(self) -> OpenPart | None:
        """Return the open text; None if no text is open, or if notes on the text are buffered."""
        opened = self._parts.get(_TEXT)
        is_plain = opened is not None and type(opened.part) is Text and not self._notes
        return opened if is_plain else None

    @override
    def end(self) -> Iterator[StreamEvent]:
        # Snowflake's finish reason is empty. Because a truncated stream may have an empty reason
        # too, the decoder accepts one only with [DONE] or a call.
        if self._finish is None or not (self._finish or self._done or self._parts.has_calls):
            raise early_close_error(self._provider)
        finish = self._parts.finish_of(finish_of(self._finish, self._provider))
        yield from self._close_text()
        yield from self._parts.close_all()
        yield Ended(finish=finish, raw_finish=self._finish or None)

    def _parsed(self, data: bytes, event: str) -> Chunk:
        try:
            chunk = CHUNKS.decode(data)
        except UNREADABLE as invalid:
            if event == "error":
                raise parse_openai_stream_error(None, self._provider) from invalid
            raise malformed_error(self._provider, "a frame that cannot be read") from invalid
        error = chunk.error or (chunk.x_groq.error if chunk.x_groq else None)
        if event == "error" or error is not None:
            raise parse_openai_stream_error(error, self._provider)
        if chunk.choices is None and chunk.usage is None:
            raise malformed_error(self._provider, "a frame of unknown form")
        return chunk

    def _chunk(self, chunk: Chunk, data: bytes) -> Iterator[StreamEvent]:
        counted = chunk.counted
        # Azure's first chunk has neither choices nor an id, so `Started` waits for the next chunk.
        if not self._started and (chunk.choices or counted is not None):
            self._started = True
            yield Started(
                upstream_id=chunk.id or None,
                served_model=chunk.model or None,
                system_fingerprint=chunk.system_fingerprint,
                service_tier=chunk.service_tier,
            )
        if chunk.citations or chunk.search_results:
            self._notes += self._citations.of_chunk(chunk)
        for choice in chunk.choices or ():
            yield from self._choice(choice, data)
        if counted is not None:
            yield UsageReported(
                usage=openai_usage_of(counted), raw=counted, service_tier=chunk.service_tier
            )

    def _choice(self, choice: Choice, data: bytes) -> Iterator[StreamEvent]:
        if choice.index:
            raise malformed_error(self._provider, "a second choice, which was not requested")
        delta = choice.delta
        if delta is None and choice.message is not None:
            delta = choice.message
            self._done = True
        if (probabilities := log_probs(choice.logprobs)) is not None:
            self._notes.append(probabilities)
        if delta is not None:
            if delta.annotations:
                self._notes += self._citations.of_text(delta.annotations)
            yield from self._delta(delta, data)
        if choice.finish_reason is not None:
            # OpenRouter repeats the final chunk. An empty reason never replaces another reason.
            self._finish = choice.finish_reason or self._finish or ""

    def _delta(self, delta: Delta, data: bytes) -> Iterator[StreamEvent]:
        if delta.has_more:
            raise malformed_error(
                self._provider, "audio, or a call in the deprecated function_call"
            )
        yield from self._reasoning(delta)
        if isinstance(delta.content, str):
            yield from self._text(Text, delta.content)
        else:
            for item in delta.content or ():
                yield from self._item(item)
        if delta.refusal:
            yield from self._text(Refusal, delta.refusal)
        for image in delta.images or ():
            yield from self._image(image.image_url.url)
        if self._notes:
            yield from self._noted()
        for piece in delta.tool_calls or ():
            yield from self._close_text()
            try:
                yield from self._calls.feed(piece, data)
            except OrphanPiece as orphan:
                raise malformed_error(
                    self._provider, "a piece of a call that has no name"
                ) from orphan

    def _reasoning(self, delta: Delta) -> Iterator[StreamEvent]:
        """Yield the reasoning of a delta once, even if a server sends it under several names."""
        details = delta.reasoning_details or ()
        plain = delta.reasoning_content or delta.reasoning
        if plain and not any(map(text_of, details)):
            yield from self._text(Reasoning, plain)
        for piece in details:
            opened = self._parts.get(_TEXT)
            if not isinstance(opened, OpenThought) or not opened.takes(piece):
                yield from self._close_text()
                opened = open_thought(piece, self._signer)
                yield from self._parts.open(_TEXT, opened)
            if text := opened.take(piece):
                yield opened.add(text)

    def _image(self, url: str) -> Iterator[StreamEvent]:
        yield from self._close_text()
        scheme, _, content = url.partition(",")
        inline = _INLINE_IMAGE.fullmatch(scheme)
        source: InlineMedia | MediaUrl
        if inline is not None and content:
            source = InlineMedia(media_type=inline[1], base64=content)
        elif url.startswith("https://"):
            source = MediaUrl(url=url)
        else:
            raise malformed_error(self._provider, "a picture that cannot be read")
        # Imported here, because most processes never receive an image.
        from tollgate.providers.shared.pictures import check_shown

        yield from self._parts.show(check_shown(source, self._provider))

    def _item(self, item: TextItem | ThinkingItem | ReferenceItem) -> Iterator[StreamEvent]:
        match item:
            case TextItem(text=text):
                yield from self._text(Text, text)
            case ThinkingItem(thinking=thoughts):
                for thought in thoughts:
                    if isinstance(thought, TextItem):
                        yield from self._text(Reasoning, thought.text)
            case ReferenceItem(reference_ids=numbers):
                self._notes += (Citation(title=str(number)) for number in numbers)
            case _:
                assert_never(item)

    def _text(self, kind: _TextKind, text: str | None) -> Iterator[StreamEvent]:
        if text:
            opened = self._parts.get(_TEXT)
            if opened is None or type(opened.part) is not kind:
                opened = yield from self._open(kind)
            yield opened.add(text)

    def _open(self, kind: _TextKind) -> Generator[StreamEvent, None, OpenPart]:
        """Return the open text of this kind, and open it first if necessary."""
        opened = self._parts.get(_TEXT)
        if opened is None or type(opened.part) is not kind:
            yield from self._close_text()
            opened = (
                open_thought({}, self._signer)
                if kind is Reasoning
                else OpenPart(part=kind(text=""))
            )
            yield from self._parts.open(_TEXT, opened)
        return opened

    def _noted(self) -> Iterator[StreamEvent]:
        """Yield the buffered citations and log probabilities if a text or a refusal is open."""
        opened = self._parts.get(_TEXT)
        if opened is not None and not isinstance(opened.part, Reasoning):
            yield from map(opened.note, self._notes)
            self._notes.clear()

    def _close_text(self) -> Iterator[StreamEvent]:
        yield from self._parts.close(_TEXT)


def _unnamed(frames: Sequence[Frame]) -> Sequence[bytes]:
    """Return the data of the frames before the first event that has a name, which may be an
    error.
    """
    if {frame.event for frame in frames} == {_NO_NAME}:
        return [frame.data for frame in frames]
    return [frame.data for frame in takewhile(lambda frame: frame.event == _NO_NAME, frames)]
