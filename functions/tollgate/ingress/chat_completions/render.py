"""An answer in OpenAI's words: a stream of frames, or one whole body.

A stream is a role frame, deltas, a finish frame, one frame with usage and accounts, `[DONE]`.
"""

from decimal import Decimal
from typing import Final, assert_never

from pydantic import JsonValue
from pydantic_core import to_json

from tollgate.core.content import Opaque, Part, Reasoning, Refusal, Text, ToolCall
from tollgate.core.errors import GatewayError
from tollgate.core.events import (
    Ended,
    PartDelta,
    PartEnd,
    PartStart,
    Started,
    StreamEvent,
    UsageReported,
)
from tollgate.core.generation import GenerationRecord
from tollgate.core.money import credits_text, usd_text
from tollgate.core.response import GenerationResponse
from tollgate.core.usage import Usage
from tollgate.ingress.base import Served
from tollgate.ingress.errors import openai_error

DONE: Final = b"data: [DONE]\n\n"

# OpenAI's values; clients check them, so a tier that only its provider knows is not told.
_SERVICE_TIERS: Final = frozenset({"auto", "default", "flex", "scale", "priority", "fast"})

_DELTA_END: Final = b'},"finish_reason":null}]}\n\n'


class ChatRenderer:
    """Writes one reply as chat completion chunks, or as one chat completion."""

    def __init__(
        self,
        served: Served,
        *,
        episode_id: str,
        usage_on_finish: bool,
        credits_per_usd: Decimal,
    ) -> None:
        self._served = served
        self._episode_id = episode_id
        self._usage_on_finish = usage_on_finish
        self._credits_per_usd = credits_per_usd
        self._parts: list[Part] = []
        # What surrounds the text of a delta, by part: most of a frame never changes.
        self._frames: list[tuple[bytes, ...]] = []
        self._ordinals: list[int] = []
        self._without_arguments: set[int] = set()
        self._calls = 0
        self._thoughts = 0
        self._finish = b""
        self._begin(Started())

    def feed(self, event: StreamEvent) -> bytes:
        """The frames of one event, empty if it has none."""
        match event:
            case PartDelta(index=index, text=text):
                if not text:
                    return b""
                if index in self._without_arguments and text.strip():
                    self._without_arguments.remove(index)
                return to_json(text).join(self._frames[index])
            case PartStart(part=part):
                return self._start(part)
            case PartEnd(index=index, opaque=opaque):
                return self._end(index, opaque)
            case Started():
                self._begin(event)
                return self._delta({"role": "assistant", "content": ""})
            case UsageReported():
                return b""
            case Ended(finish=finish, raw_finish=raw_finish):
                reasons = to_json({"finish_reason": finish, "native_finish_reason": raw_finish})
                self._finish = b"%b},%b]" % (self._delta_head, reasons[1:])
                return b"" if self._usage_on_finish else self._finish + b"}\n\n"
            case _:
                assert_never(event)

    def close(self, record: GenerationRecord) -> bytes:
        """The last frames of a finished stream: usage, then the end mark."""
        frame = self._finish if self._usage_on_finish else self._head + b',"choices":[]'
        return b"%b,%b}\n\n%b" % (frame, self._accounts(record), DONE)

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        """The frames that end a stream which broke after the commit point."""
        broken = to_json(
            {
                "choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "error"}],
                "error": openai_error(error, self._served.generation_id),
            }
        )
        return b"%b,%b,%b}\n\n%b" % (self._head, broken[1:-1], self._accounts(record), DONE)

    def whole(self, response: GenerationResponse, record: GenerationRecord) -> bytes:
        """The body of a reply that is not streamed."""
        body = self._envelope("chat.completion", response.started)
        body["choices"] = [
            {
                "index": 0,
                "message": _message(response.parts),
                "logprobs": None,
                "finish_reason": response.finish,
                "native_finish_reason": response.raw_finish,
            }
        ]
        return b"%b,%b}" % (to_json(body)[:-1], self._accounts(record))

    def _envelope(self, object_: str, started: Started) -> dict[str, JsonValue]:
        envelope: dict[str, JsonValue] = {
            "id": f"gen-{self._served.generation_id}",
            "object": object_,
            "created": self._served.created_s,
            "model": self._served.model,
        }
        if started.system_fingerprint is not None:
            envelope["system_fingerprint"] = started.system_fingerprint
        if started.service_tier in _SERVICE_TIERS:
            envelope["service_tier"] = started.service_tier
        envelope["episode_id"] = self._episode_id
        return envelope

    def _begin(self, started: Started) -> None:
        self._head = b"data: " + to_json(self._envelope("chat.completion.chunk", started))[:-1]
        self._delta_head = self._head + b',"choices":[{"index":0,"delta":{'

    def _delta(self, delta: dict[str, JsonValue]) -> bytes:
        return self._delta_head + to_json(delta)[1:-1] + _DELTA_END

    def _start(self, part: Part) -> bytes:
        head = self._delta_head
        ordinal = 0
        frame = b""
        match part:
            case Text():
                around: tuple[bytes, ...] = (head + b'"content":', _DELTA_END)
            case Refusal():
                around = (head + b'"refusal":', _DELTA_END)
            case Reasoning():
                ordinal, self._thoughts = self._thoughts, self._thoughts + 1
                around = (
                    head + b'"reasoning":',
                    b',"reasoning_content":',
                    b',"reasoning_details":[{"type":"reasoning.text","index":%d,"text":' % ordinal,
                    b"}]" + _DELTA_END,
                )
                # Accumulators insert by position: each part takes its place before it grows.
                frame = self._delta({"reasoning_details": [_thought(ordinal, "", {})]})
            case ToolCall():
                ordinal, self._calls = self._calls, self._calls + 1
                around = (
                    head + b'"tool_calls":[{"index":%d,"function":{"arguments":' % ordinal,
                    b"}}]" + _DELTA_END,
                )
                self._without_arguments.add(len(self._parts))
                frame = self._delta({"tool_calls": [{"index": ordinal, **_call(part, "")}]})
            case _:
                assert_never(part)
        self._parts.append(part)
        self._frames.append(around)
        self._ordinals.append(ordinal)
        return frame

    def _end(self, index: int, opaque: Opaque) -> bytes:
        part, ordinal = self._parts[index], self._ordinals[index]
        match part:
            case Text() | Refusal():
                return b""
            case Reasoning():
                signed = opaque or part.opaque
                if not signed:
                    return b""
                return self._delta({"reasoning_details": [_thought(ordinal, "", signed)]})
            case ToolCall():
                signed = opaque or part.opaque
                if not signed and index not in self._without_arguments:
                    return b""
                missing = "{}" if index in self._without_arguments else ""
                more: dict[str, JsonValue] = {
                    "index": ordinal,
                    "function": {"arguments": missing},
                }
                if signed:
                    more["extra_content"] = dict(signed)
                return self._delta({"tool_calls": [more]})
            case _:
                assert_never(part)

    def _accounts(self, record: GenerationRecord) -> bytes:
        """Usage, and what headers say of an answer that is not streamed."""
        told: dict[str, JsonValue] = {
            "model_used": record.model,
            "provider_used": record.provider,
        }
        if self._served.fallback_from is not None:
            told["fallback_from"] = self._served.fallback_from
            told["fallback_depth"] = self._served.fallback_depth
        if self._served.adapted:
            told["adapted"] = list(self._served.adapted)
        # Amounts are written digit by digit: a float cannot hold every nano-dollar.
        cost = record.cost_nano_usd
        return b'"usage":%b,"cost":%b},"credits_used":%b,%b' % (
            to_json(_usage(record.usage))[:-1],
            usd_text(cost).encode(),
            credits_text(cost, self._credits_per_usd).encode(),
            to_json(told)[1:-1],
        )


def _usage(usage: Usage) -> dict[str, JsonValue]:
    return {
        "prompt_tokens": usage.input_tokens,
        "completion_tokens": usage.output_tokens or 0,
        "total_tokens": usage.total_tokens,
        "prompt_tokens_details": {
            "cached_tokens": usage.cache_read_input_tokens or 0,
            "cache_write_tokens": usage.cache_write_input_tokens,
            "audio_tokens": usage.audio_input_tokens or 0,
        },
        "completion_tokens_details": {
            "reasoning_tokens": usage.reasoning_tokens or 0,
            "audio_tokens": usage.audio_output_tokens or 0,
        },
    }


def _message(parts: tuple[Part, ...]) -> dict[str, JsonValue]:
    texts: list[str] = []
    refusals: list[str] = []
    thoughts: list[Reasoning] = []
    calls: list[ToolCall] = []
    for part in parts:
        match part:
            case Text(text=text):
                texts.append(text)
            case Refusal(text=text):
                refusals.append(text)
            case Reasoning():
                thoughts.append(part)
            case ToolCall():
                calls.append(part)
            case _:
                assert_never(part)
    content = "".join(texts)
    refusal = "".join(refusals)
    message: dict[str, JsonValue] = {
        "role": "assistant",
        "content": None if not content and (calls or refusal) else content,
        "refusal": refusal or None,
    }
    reasoning = "".join(thought.text for thought in thoughts)
    if reasoning:
        message["reasoning"] = message["reasoning_content"] = reasoning
    if thoughts:
        message["reasoning_details"] = [
            _thought(index, thought.text, thought.opaque) for index, thought in enumerate(thoughts)
        ]
    if calls:
        message["tool_calls"] = [_whole_call(call) for call in calls]
    return message


def _thought(index: int, text: str, opaque: Opaque) -> dict[str, JsonValue]:
    thought: dict[str, JsonValue] = {"type": "reasoning.text", "index": index, "text": text}
    if opaque:
        thought["opaque"] = dict(opaque)
    return thought


def _call(call: ToolCall, arguments: str) -> dict[str, JsonValue]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments},
    }


def _whole_call(call: ToolCall) -> dict[str, JsonValue]:
    # A call without arguments is told as one with none, for arguments are valid JSON.
    blank = not call.arguments.strip()
    whole = _call(call, call.arguments + "{}" if blank else call.arguments)
    if call.opaque:
        whole["extra_content"] = dict(call.opaque)
    return whole
