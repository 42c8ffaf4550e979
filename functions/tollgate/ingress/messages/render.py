"""Renders answers in Anthropic's format, as a stream of events or as a single message.

A stream consists of `message_start`, blocks, `message_delta` with stop reason and usage, and
`message_stop`. https://platform.claude.com/docs/en/build-with-claude/streaming (2026-11-22)
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Final, assert_never

from pydantic_core import to_json

from tollgate.core.content import (
    ServerToolRun,
)
from tollgate.core.errors import GatewayError
from tollgate.core.events import (
    Ended,
    Finish,
    Output,
    PartDelta,
    PartEnd,
    Partial,
    PartNote,
    PartStart,
    Started,
    StreamEvent,
    UnknownFields,
    UsageReported,
)
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.core.server_tools import RunResult
from tollgate.core.service_tiers import DEFAULT_TIER, plain_tier
from tollgate.core.usage import Usage
from tollgate.ingress.base import ParsedCall, ServedBy
from tollgate.ingress.messages.block_frames import RenderedBlock, frame
from tollgate.ingress.messages.blocks import BlockWriter, render_blocks
from tollgate.ingress.messages.errors import error_envelope
from tollgate.ingress.shared.accounts import ReplyAccounts

_STOP_REASONS: Final[Mapping[Finish, str]] = {
    "stop": "end_turn",
    "length": "max_tokens",
    "tool_calls": "tool_use",
    "content_filter": "refusal",
}
# Anthropic's stop reasons that are more specific than the core's `Finish`.
_OWN_REASONS: Final[Mapping[str, Finish]] = {
    "model_context_window_exceeded": "length",
    "pause_turn": "stop",
    "compaction": "stop",
    "stop_sequence": "stop",
}
# Anthropic's names for service tiers; other names are omitted from replies.
_TIERS: Final = {DEFAULT_TIER: "standard", "priority": "priority", "batch": "batch"}


_DELTA: Final = b'event: message_delta\ndata: {"type":"message_delta","delta":%b,%b}\n\n'


class MessageRenderer:
    """Renders one reply as a stream of events or as one message."""

    def __init__(self, call: ParsedCall, served: ServedBy, *, credits_per_usd: Decimal) -> None:
        reasoning = call.request.reasoning
        hides_thinking = reasoning is not None and reasoning.exclude
        self._served = served
        self._accounts = ReplyAccounts(served, credits_per_usd, call.tells_routing, self._usage_of)
        self._has_begun = False
        self._usage = Usage()
        self._ended = Ended(finish="stop")
        self._hides_thinking = hides_thinking
        self._blocks = BlockWriter(served, hides_thinking=hides_thinking)
        self._runs: dict[int, ServerToolRun] = {}
        self._uses: list[str] = []

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        match event:
            case Started() | Output() | Partial() | UnknownFields():
                return b""
            case UsageReported(usage=usage):
                self._usage = self._usage.update(usage)
                return b""
            case PartStart() | PartDelta() | PartNote() | PartEnd():
                self._count(event)
                return self._begin() + self._blocks.feed(event)
            case Ended():
                self._ended = event
                return self._begin()
            case _:
                assert_never(event)

    def close(self, record: GenerationRecord) -> bytes:
        """Render the last events of a complete stream: usage, then `message_stop`."""
        stop = to_json(_stop(self._ended.finish, self._ended))
        last = _DELTA % (stop, self._accounts.render(record))
        return self._begin() + last + frame("message_stop", {})

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        head = to_json(error_envelope(error, self._served.generation_id))
        return b"event: error\ndata: %b,%b}\n\n" % (head[:-1], self._accounts.render(record))

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        (response,) = responses
        blocks: list[JsonValue] = [
            *render_blocks(response, self._served, hides_thinking=self._hides_thinking)
        ]
        for index, part in enumerate(response.parts):
            self._count(PartStart(index=index, part=part))
            for note in response.notes.get(index, ()):
                self._count(PartNote(index=index, note=note))
        body = self._message(blocks) | _stop(response.finish, response)
        return b"%b,%b}" % (to_json(body)[:-1], self._accounts.render(record))

    def _count(self, event: PartStart | PartDelta | PartNote | PartEnd) -> None:
        """Count the successful server tool runs, which usage reports by tool."""
        match event:
            case PartStart(index=index, part=ServerToolRun() as run):
                self._runs[index] = run
            case PartNote(index=index, note=RunResult(error=None)) if index in self._runs:
                self._uses.append(self._runs[index].tool)
            case _:
                pass

    def _begin(self) -> bytes:
        """Return `message_start` with the usage so far; return no bytes after the first call."""
        if self._has_begun:
            return b""
        self._has_begun = True
        unknown: RenderedBlock = {"stop_reason": None, "stop_sequence": None}
        message = self._message([]) | unknown | {"usage": _usage(self._usage, ())}
        return frame("message_start", {"message": message})

    def _message(self, content: list[JsonValue]) -> RenderedBlock:
        return {
            "id": f"msg_{self._served.generation_id}",
            "type": "message",
            "role": "assistant",
            "model": self._served.model,
            "content": content,
        }

    def _usage_of(self, record: GenerationRecord) -> RenderedBlock:
        usage = _usage(record.usage, self._uses)
        if tier := _TIERS.get(plain_tier(record.service_tier) or ""):
            usage["service_tier"] = tier
        return usage


def unknown_of_message(unknown: Sequence[Sequence[UnknownFields]]) -> Iterator[JsonObject]:
    """Yield the unknown fields of a streamed answer, nested as in a whole message."""
    blocks: list[JsonValue] = []
    for event in chain.from_iterable(unknown):
        match event:
            case UnknownFields(is_frame=True):
                # A non-streamed message cannot contain a frame.
                pass
            case UnknownFields(place="message_start", fields={"message": dict(message)}):
                yield message
            case UnknownFields(place="message_delta", fields=fields):
                yield {name: value for name, value in fields.items() if name != "delta"}
                delta = fields.get("delta")
                yield delta if isinstance(delta, dict) else {}
            case UnknownFields(place="content_block_start", fields=fields):
                blocks.append(fields.get("content_block", {}))
            case _:
                pass
    yield {"content": blocks}


def _stop(finish: Finish, ending: Ended | GenerationResponse) -> RenderedBlock:
    """Return the stop reason; a more precise reason from the provider takes precedence."""
    reason = _STOP_REASONS[finish]
    if ending.raw_finish is not None and _OWN_REASONS.get(ending.raw_finish) == finish:
        reason = ending.raw_finish
    elif ending.stop_sequence is not None and finish == "stop":
        reason = "stop_sequence"
    return {"stop_reason": reason, "stop_sequence": ending.stop_sequence}


def _usage(usage: Usage, uses: Sequence[str]) -> RenderedBlock:
    """Return usage with Anthropic's token counts, which do not overlap.

    `uses` has the name of the tool for each successful server tool run.
    """
    counted: RenderedBlock = {
        "input_tokens": usage.uncached_input_tokens or 0,
        "cache_creation_input_tokens": usage.cache_write_input_tokens,
        "cache_read_input_tokens": usage.cache_read_input_tokens or 0,
        "cache_creation": {
            "ephemeral_5m_input_tokens": usage.cache_write_5m_input_tokens or 0,
            "ephemeral_1h_input_tokens": usage.cache_write_1h_input_tokens or 0,
        },
        "output_tokens": usage.output_tokens or 0,
    }
    if usage.reasoning_tokens is not None:
        counted["output_tokens_details"] = {"thinking_tokens": usage.reasoning_tokens}
    searches, fetches = uses.count("web_search"), uses.count("web_fetch")
    if usage.web_searches is not None or searches or fetches:
        counted["server_tool_use"] = {
            "web_search_requests": (usage.web_searches or 0) + searches,
            "web_fetch_requests": fetches,
        }
    return counted
