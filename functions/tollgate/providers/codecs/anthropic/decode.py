"""The decoder for Anthropic's streamed messages."""

from collections.abc import Iterator
from functools import reduce
from typing import Final, assert_never

from pydantic_core import ValidationError, from_json

from tollgate.core.events import (
    Ended,
    Finish,
    Started,
    StreamEvent,
    UnknownFields,
    UsageReported,
)
from tollgate.core.json_value import JsonValue
from tollgate.core.signers import CLAUDE
from tollgate.core.unknown_fields import EVENT_TYPE, unknown_tree
from tollgate.core.usage import Usage
from tollgate.providers.codecs.anthropic.blocks import Blocks, BrokenBlock
from tollgate.providers.codecs.anthropic.errors import error_in_stream
from tollgate.providers.codecs.anthropic.wire import (
    EVENT_TYPES,
    ContentBlock,
    ContentBlockDelta,
    ContentBlockStart,
    ContentBlockStop,
    ErrorEvent,
    Event,
    Message,
    MessageDelta,
    MessageStart,
    MessageStop,
    OtherBlock,
    OtherDelta,
    Ping,
    Stop,
    StreamedEvent,
)
from tollgate.providers.ports.base import Frame
from tollgate.providers.shared.bedrock import error_in_bedrock_stream
from tollgate.providers.shared.counts import Counts, split
from tollgate.providers.shared.refusals import early_close_error, malformed_error

# Anthropic pauses a turn only while its own tools run. If the gateway does not continue the turn,
# the caller sees the raw finish reason and may send the turn back. Unknown reasons mean `stop`.
_PAUSED: Final = "pause_turn"
_WIRE_FORMAT: Final = "anthropic"
_FINISH: Final[dict[str, Finish]] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    _PAUSED: "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "content_filter",
}


class MessagesDecoder:
    """Decodes one stream, or one message from a server that does not stream."""

    def __init__(self, provider: str, *, signer: str | None = CLAUDE) -> None:
        self._provider = provider
        self._started = False
        self._ended = False
        self._blocks = Blocks(signer)
        self._usage: dict[str, JsonValue] = {}
        self._stop: Stop = Stop()

    def feed(self, frame: Frame) -> Iterator[StreamEvent]:
        """Yield the events of one frame; raise UpstreamError for an error or an unknown frame."""
        if frame.exception is not None:
            raise error_in_bedrock_stream(frame, self._provider)
        event = self._parsed(frame.data)
        if isinstance(event, UnknownFields):
            yield event
            return
        if isinstance(event, ErrorEvent):
            raise error_in_stream(event.error, self._provider)
        if isinstance(event, Ping):
            return
        is_first = isinstance(event, MessageStart | Message)
        if self._ended or self._started == is_first:
            raise malformed_error(
                self._provider, f"a frame of type {event.type} in the wrong place"
            )
        try:
            yield from _unknown(event)
            yield from self._event(event)
        except BrokenBlock as broken:
            raise malformed_error(self._provider, str(broken)) from broken

    def end(self) -> Iterator[StreamEvent]:
        """Yield the last events of the answer; raise UpstreamError for an incomplete message."""
        if self._ended:
            return
        if self._stop.stop_reason is None:
            raise early_close_error(self._provider)
        try:
            yield from self._finish()
        except BrokenBlock as broken:
            raise malformed_error(self._provider, str(broken)) from broken

    def _parsed(self, data: bytes) -> Event | UnknownFields:
        try:
            return StreamedEvent.model_validate_json(data).root
        except ValidationError as invalid:
            unknown = _unknown_event(data)
            if unknown is None or not self._started or self._ended:
                raise malformed_error(self._provider, "a frame that cannot be read") from invalid
            return unknown

    def _event(
        self,
        event: MessageStart
        | Message
        | ContentBlockStart
        | ContentBlockDelta
        | ContentBlockStop
        | MessageDelta
        | MessageStop,
    ) -> Iterator[StreamEvent]:
        match event:
            case MessageStart(message=message):
                yield from self._start(message)
            case Message():
                yield from self._whole(event)
            case ContentBlockStart(index=index, content_block=block):
                yield from self._blocks.start(index, block)
            case ContentBlockDelta(index=index, delta=delta):
                yield from self._blocks.more(index, delta)
            case ContentBlockStop(index=index):
                yield from self._blocks.parts.close(index)
            case MessageDelta(delta=stop, usage=usage):
                if stop.stop_reason is not None:
                    self._stop = stop
                yield from self._counted(usage)
            case MessageStop():
                if self._stop.stop_reason is None:
                    raise malformed_error(self._provider, "a message_stop without a stop reason")
                yield from self._finish()
            case _:
                assert_never(event)

    def _start(self, message: Message) -> Iterator[StreamEvent]:
        self._started = True
        yield Started(
            upstream_id=message.id, served_model=message.model, service_tier=_tier(message.usage)
        )
        yield from self._counted(message.usage)

    def _whole(self, message: Message) -> Iterator[StreamEvent]:
        yield from self._start(message)
        for index, block in enumerate(message.content):
            yield from self._blocks.start(index, block)
            yield from self._blocks.parts.close(index)
        if message.stop_reason is None:
            raise malformed_error(self._provider, "an answer without a stop reason")
        self._stop = message
        yield from self._finish()

    def _finish(self) -> Iterator[StreamEvent]:
        yield from self._blocks.parts.close_all()
        details = self._stop.stop_details
        if details is not None and details.explanation:
            yield from self._blocks.parts.refuse(details.explanation)
        finish = _FINISH.get(self._stop.stop_reason or "", "stop")
        self._ended = True
        yield Ended(
            finish=self._blocks.parts.finish_of(finish),
            raw_finish=self._stop.stop_reason,
            stop_sequence=self._stop.stop_sequence,
            paused=self._stop.stop_reason == _PAUSED,
        )

    def _counted(self, usage: dict[str, JsonValue] | None) -> Iterator[StreamEvent]:
        if usage is not None:
            # The end of a stream repeats some of the counts from its start, possibly with other
            # values.
            known = {name: count for name, count in usage.items() if count is not None}
            self._usage = {**self._usage, **known}
            yield UsageReported(
                usage=usage_of(self._usage), raw=self._usage, service_tier=_tier(self._usage)
            )


def _unknown(event: Event) -> Iterator[UnknownFields]:
    """Yield the unknown fields of an event, or of a whole message as if it were streamed."""
    match event:
        case Message():
            yield from _fields("message_start", {"message": unknown_tree(event)})
            for block in event.content:
                yield from _of_block(block)
        case ContentBlockStart(content_block=OtherBlock()):
            # The block itself is forwarded with all its fields.
            yield from _fields(event.type, unknown_tree(event, ("content_block",)))
        case ContentBlockDelta(delta=OtherDelta()):
            yield from _fields(event.type, unknown_tree(event, ("delta",)))
        case _:
            yield from _fields(event.type, unknown_tree(event))


def _of_block(block: ContentBlock) -> Iterator[UnknownFields]:
    tree = {} if isinstance(block, OtherBlock) else unknown_tree(block)
    yield from _fields("content_block_start", {"content_block": tree})


def _fields(place: str, tree: dict[str, JsonValue]) -> Iterator[UnknownFields]:
    if any(value != {} for value in tree.values()):
        yield UnknownFields(wire_format=_WIRE_FORMAT, place=place, fields=tree)


def _unknown_event(data: bytes) -> UnknownFields | None:
    """Return an event of unknown type; None if the data is not an event, or its type is known."""
    try:
        event = from_json(data)
    except ValueError:
        return None
    match event:
        case {"type": str(type_)} if type_ not in EVENT_TYPES and EVENT_TYPE.fullmatch(type_):
            return UnknownFields(wire_format=_WIRE_FORMAT, place=type_, fields=event, is_frame=True)
        case _:
            return None


def _tier(usage: JsonValue) -> str | None:
    return Counts(usage).word("service_tier")


def usage_of(raw: JsonValue) -> Usage:
    """Return the tokens of each class, including the tokens of Anthropic's own compactions.

    Anthropic's input tokens exclude cached tokens, and all totals exclude compactions.
    https://platform.claude.com/docs/en/build-with-claude/compaction (2026-11-27)
    """
    report = Counts(raw)
    iterations = report.each("iterations")
    compactions = (counts for counts in iterations if counts.word("type") == "compaction")
    return reduce(Usage.plus, map(_usage, compactions), _usage(report))


def _usage(report: Counts) -> Usage:
    by_lifetime = report.inside("cache_creation")
    one_hour = by_lifetime.count("ephemeral_1h_input_tokens")
    five_minutes = by_lifetime.count("ephemeral_5m_input_tokens")
    written = report.count("cache_creation_input_tokens")
    if written is not None:
        five_minutes, (one_hour,) = split(written, one_hour)
    return Usage(
        uncached_input_tokens=report.count("input_tokens"),
        cache_read_input_tokens=report.count("cache_read_input_tokens"),
        cache_write_5m_input_tokens=five_minutes,
        cache_write_1h_input_tokens=one_hour,
        output_tokens=report.count("output_tokens"),
        reasoning_tokens=report.inside("output_tokens_details").count("thinking_tokens"),
        web_searches=report.inside("server_tool_use").count("web_search_requests"),
    )
