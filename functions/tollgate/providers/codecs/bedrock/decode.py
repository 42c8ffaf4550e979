"""The decoder for Bedrock's ConverseStream, and for the replies of Converse in batches."""

import base64
import binascii
from collections.abc import Callable, Generator, Iterable, Iterator
from typing import Final, TypeVar

import msgspec
from typing_extensions import override

from tollgate.core.content import Part, Provenance, Reasoning, Text, ToolCall
from tollgate.core.events import Citation, Ended, Finish, Started, StreamEvent, UsageReported
from tollgate.core.json_value import JsonValue
from tollgate.core.usage import Usage
from tollgate.providers.codecs.bedrock.wire import (
    HIDDEN,
    CitationDelta,
    ContentBlock,
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    ConverseReply,
    MessageStop,
    Metadata,
    ReasoningDelta,
    ReasoningText,
    ToolUseStart,
)
from tollgate.providers.ports.base import Frame
from tollgate.providers.shared.bedrock import error_in_bedrock_stream
from tollgate.providers.shared.counts import Counts, split, sum_counts
from tollgate.providers.shared.parts import OpenPart, Parts
from tollgate.providers.shared.refusals import UNREADABLE, early_close_error, malformed_error

_FINISH: Final[dict[str, Finish]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "guardrail_intervened": "content_filter",
    "content_filtered": "content_filter",
}

# Stop reasons of unusable answers, which raise an error: `stop` would suggest a complete answer.
_BROKEN: Final = frozenset({"malformed_model_output", "malformed_tool_use"})

# Calls are the only kind of block that Bedrock announces with a start event.
_CALL: Final = "toolUse"

_Read = TypeVar("_Read")


class _Block(OpenPart, kw_only=True):
    """A content block; only reasoning uses `signer`, `signature` and `redacted`."""

    signer: str | None
    signature: str = ""
    redacted: bytes = b""

    @override
    def finish(self) -> Iterator[StreamEvent]:
        """Yield the events that end the part, with the data that must be sent back to Bedrock."""
        if self.signature or self.redacted:
            self.provenance = Provenance(
                signer=self.signer,
                signature=self.signature or None,
                data=self.redacted.decode(HIDDEN) if self.redacted else None,
            )
        return super().finish()


class ConverseDecoder:
    """Decodes one stream, or one whole reply.

    `Ended` comes last, because usage follows `messageStop`.
    """

    def __init__(self, provider: str, *, signer: str | None) -> None:
        self._provider = provider
        self._signer = signer
        self._started = False
        self._parts = Parts[int, _Block]()
        self._stop_reason: str | None = None
        self._readers: dict[str, Callable[[bytes], Iterable[StreamEvent]]] = {
            "messageStart": self._message_start,
            "contentBlockStart": self._block_start,
            "contentBlockDelta": self._block_delta,
            "contentBlockStop": self._block_stop,
            "messageStop": self._message_stop,
            "metadata": self._metadata,
            "message": self._whole_reply,
        }

    def feed(self, frame: Frame) -> Iterable[StreamEvent]:
        """Return the events of a message; raise UpstreamError for an exception or unknown event."""
        if frame.exception is not None:
            raise error_in_bedrock_stream(frame, self._provider)
        reader = self._readers.get(frame.event)
        if reader is None:
            raise malformed_error(self._provider, "a frame of unknown form")
        return reader(frame.data) if self._started else self._begin(reader, frame.data)

    def _begin(
        self, reader: Callable[[bytes], Iterable[StreamEvent]], data: bytes
    ) -> Iterator[StreamEvent]:
        self._started = True
        yield Started()
        yield from reader(data)

    def end(self) -> Iterator[StreamEvent]:
        if self._stop_reason is None:
            raise early_close_error(self._provider)
        if self._stop_reason in _BROKEN:
            raise malformed_error(self._provider, f"the stop reason {self._stop_reason!r}")
        yield from self._parts.close_all()
        finish = self._parts.finish_of(_FINISH.get(self._stop_reason, "stop"))
        yield Ended(finish=finish, raw_finish=self._stop_reason)

    def _message_start(self, data: bytes) -> Iterator[StreamEvent]:
        self._read(dict, data)
        yield from ()

    def _block_start(self, data: bytes) -> Iterator[StreamEvent]:
        event = self._read(ContentBlockStart, data)
        if event.start.keys() - {_CALL}:
            raise malformed_error(self._provider, "a content block of unknown kind")
        if event.start.get(_CALL) is None:
            return
        call = self._converted(ToolUseStart, event.start[_CALL])
        yield from self._open(event.block, ToolCall(id=call.id, name=call.name, arguments=""))

    def _block_delta(self, data: bytes) -> Iterable[StreamEvent]:
        event = self._read(ContentBlockDelta, data)
        opened = self._parts.get(event.block)
        # A fast path, because most messages add text to an open part.
        if event.delta.text and opened is not None and type(opened.part) is Text:
            return (opened.add(event.delta.text),)
        return self._content(event)

    def _content(self, event: ContentBlockDelta) -> Iterator[StreamEvent]:
        delta = event.delta
        if delta.text is not None:
            yield from self._text(event.block, Text(text=""), delta.text)
        elif delta.tool_use is not None:
            call = self._parts.get(event.block)
            if call is None:
                raise malformed_error(self._provider, "a piece of a call that has no name")
            if delta.tool_use.input:
                yield call.add(delta.tool_use.input)
        elif delta.reasoning is not None:
            yield from self._reasoning(event.block, delta.reasoning)
        elif delta.citation is not None:
            yield from self._cited(event.block, delta.citation)
        else:
            raise malformed_error(self._provider, "a content delta of unknown kind")

    def _block_stop(self, data: bytes) -> Iterator[StreamEvent]:
        yield from self._parts.close(self._read(ContentBlockStop, data).block)

    def _message_stop(self, data: bytes) -> Iterator[StreamEvent]:
        self._stop_reason = self._read(MessageStop, data).stop_reason
        yield from ()

    def _metadata(self, data: bytes) -> Iterator[StreamEvent]:
        metadata = self._read(Metadata, data)
        yield UsageReported(
            usage=usage_of(metadata.usage),
            raw=metadata.usage,
            service_tier=metadata.service_tier.type,
        )

    def _whole_reply(self, data: bytes) -> Iterator[StreamEvent]:
        reply = self._read(ConverseReply, data)
        for number, block in enumerate(reply.output.message.content):
            yield from self._whole_block(number, block)
            yield from self._parts.close(number)
        self._stop_reason = reply.stop_reason
        yield UsageReported(
            usage=usage_of(reply.usage),
            raw=reply.usage,
            service_tier=reply.service_tier.type if reply.service_tier else None,
        )

    def _whole_block(self, number: int, block: ContentBlock) -> Iterator[StreamEvent]:
        if block.text is not None:
            yield from self._text(number, Text(text=""), block.text)
        elif block.tool_use is not None:
            call = block.tool_use
            opened = yield from self._open(
                number, ToolCall(id=call.id, name=call.name, arguments="")
            )
            yield opened.add(msgspec.json.encode(call.input or {}).decode())
        elif block.reasoning is not None:
            said = block.reasoning.text or ReasoningText()
            delta = ReasoningDelta(
                text=said.text,
                signature=said.signature,
                redacted_content=block.reasoning.redacted_content,
            )
            yield from self._reasoning(number, delta)
        elif block.cited is not None:
            for text in block.cited.content:
                yield from self._text(number, Text(text=""), text.text or "")
            for cited in block.cited.citations:
                yield from self._cited(number, cited)
        else:
            raise malformed_error(self._provider, "a content block of unknown kind")

    def _text(self, block: int, part: Part, text: str) -> Iterator[StreamEvent]:
        """Yield more text of a block, and open the block as `part` first if necessary."""
        if text:
            opened = self._parts.get(block)
            if opened is None or type(opened.part) is not type(part):
                opened = yield from self._open(block, part)
            yield opened.add(text)

    def _reasoning(self, block: int, delta: ReasoningDelta) -> Iterator[StreamEvent]:
        # A block with hidden data has no text, so its part is marked as hidden from its beginning.
        hidden = "" if delta.redacted_content else None
        part = Reasoning(text="", provenance=Provenance(signer=self._signer, data=hidden))
        yield from self._text(block, part, delta.text or "")
        if delta.signature or delta.redacted_content:
            opened = yield from self._open(block, part)
            opened.signature += delta.signature or ""
            try:
                opened.redacted += base64.b64decode(delta.redacted_content or "", validate=True)
            except binascii.Error as invalid:
                raise malformed_error(
                    self._provider, "hidden reasoning that is not base64"
                ) from invalid

    def _cited(self, block: int, cited: CitationDelta) -> Iterator[StreamEvent]:
        opened = yield from self._open(block, Text(text=""))
        page = cited.location.web if cited.location else None
        citation = Citation(url=page.url if page else cited.source, title=cited.title)
        yield opened.note(citation)

    def _open(self, block: int, part: Part) -> Generator[StreamEvent, None, _Block]:
        """Return a block, and open it first if needed: text and reasoning have no start event."""
        opened = self._parts.get(block)
        if opened is None:
            opened = _Block(part=part, signer=self._signer)
            yield from self._parts.open(block, opened)
        elif type(opened.part) is not type(part):
            raise malformed_error(self._provider, "two kinds of content in one block")
        return opened

    def _read(self, shape: type[_Read], data: bytes) -> _Read:
        try:
            return msgspec.json.decode(data, type=shape, strict=False)
        except UNREADABLE as invalid:
            raise malformed_error(self._provider, "a frame that cannot be read") from invalid

    def _converted(self, shape: type[_Read], value: object) -> _Read:
        try:
            return msgspec.convert(value, shape, strict=False)
        except msgspec.ValidationError as invalid:
            raise malformed_error(self._provider, "a frame that cannot be read") from invalid


def usage_of(raw: JsonValue) -> Usage:
    """Return the tokens of each class; Converse does not include cached tokens in the input."""
    report = Counts(raw)
    by_lifetime = [*report.each("cacheDetails")]
    one_hour: int | None = sum_counts(
        *(entry.count("inputTokens") for entry in by_lifetime if entry.word("ttl") == "1h")
    )
    written = report.count("cacheWriteInputTokens")
    if written is not None:
        written, (one_hour,) = split(written, one_hour)
    return Usage(
        uncached_input_tokens=report.count("inputTokens"),
        cache_read_input_tokens=report.count("cacheReadInputTokens"),
        cache_write_5m_input_tokens=written,
        cache_write_1h_input_tokens=one_hour or None,
        output_tokens=report.count("outputTokens"),
    )
