"""Renders chat completions, as a stream of frames or as a single body.

A stream consists of a role frame, deltas, a finish frame, a frame with usage and cost (the
accounts), and `[DONE]`. In a failed stream, an error frame replaces the finish frame and the
accounts.
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from typing import Final, assert_never

from msgspec.structs import replace
from typing_extensions import override

from tollgate.core.events import (
    Ended,
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
from tollgate.ingress.base import ParsedCall, ServedBy
from tollgate.ingress.chat_completions.choice_renderer import ChoiceRenderer
from tollgate.ingress.chat_completions.message import render_choice
from tollgate.ingress.shared.accounts import CompletionFrames

# OpenAI's service tiers. Any other tier is omitted, because clients validate this field.
_SERVICE_TIERS: Final = frozenset({"auto", "default", "flex", "scale", "priority", "fast"})

# Unknown fields of calls beyond this number are left out of a non-streamed reply.
_CALLS_MAX: Final = 512


class ChatRenderer(CompletionFrames):
    """Renders one reply as chat completion chunks or as one chat completion."""

    def __init__(
        self, call: ParsedCall, served: ServedBy, *, episode_id: str, credits_per_usd: Decimal
    ) -> None:
        super().__init__(call, served, episode_id=episode_id, credits_per_usd=credits_per_usd)
        reasoning = call.request.reasoning
        self._excludes_reasoning = reasoning is not None and reasoning.exclude
        self._started = Started()
        self._choices = [
            ChoiceRenderer(
                choice,
                self._head,
                model=served.model,
                excludes_reasoning=self._excludes_reasoning,
                reported_tools=[tool.id for tool in call.request.server_tools if tool.events],
            )
            for choice in range(call.request.choices)
        ]

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        writer = self._choices[choice]
        match event:
            case PartStart() | PartDelta() | PartNote() | PartEnd():
                return writer.feed(event)
            case Started():
                head = self._frame_head(event)
                if choice == 0:
                    self._started, self._head = event, head
                return writer.begin(head)
            case UsageReported(service_tier=tier):
                if choice == 0 and tier not in (None, self._started.service_tier):
                    self._started = replace(self._started, service_tier=tier)
                    self._head = self._frame_head(self._started)
                    writer.set_head(self._head)
                return b""
            case Output() | Partial() | UnknownFields():
                return b""
            case Ended():
                files = self._served.read_files if choice == 0 else ()
                last = writer.finish_runs() + (writer.finish_files(files) if files else b"")
                return last + self._finish_frame(writer.finish(event))
            case _:
                assert_never(event)

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        files = self._served.read_files
        choices = [
            render_choice(
                index,
                response,
                model=self._served.model,
                excludes_reasoning=self._excludes_reasoning,
                files=() if index else files,
            )
            for index, response in enumerate(responses)
        ]
        return self._whole(responses[0].started, choices, record)

    @override
    def _envelope(self, started: Started, *, streamed: bool) -> dict[str, JsonValue]:
        envelope: dict[str, JsonValue] = {
            "id": f"gen-{self._served.generation_id}",
            "object": "chat.completion.chunk" if streamed else "chat.completion",
            "created": self._served.created_s,
            "model": self._served.model,
        }
        if self._served.provider is not None:
            # OpenRouter's clients require this field in every frame.
            envelope["provider"] = self._served.provider_name or self._served.provider
        if started.system_fingerprint is not None or not streamed:
            # OpenAI sends null if a model has no fingerprint; OpenRouter's SDKs require the field.
            envelope["system_fingerprint"] = started.system_fingerprint
        if started.service_tier in _SERVICE_TIERS:
            envelope["service_tier"] = started.service_tier
        envelope["episode_id"] = self._episode_id
        return envelope


def unknown_of_completion(unknown: Sequence[Sequence[UnknownFields]]) -> Iterator[JsonObject]:
    """Yield the places of the chunks' unknown fields in a whole completion."""
    choices: list[JsonValue] = []
    for events in unknown:
        choice: dict[str, JsonValue] = {}
        message: dict[str, JsonValue] = {}
        calls: dict[int, JsonValue] = {}
        for event in events:
            yield _without(event.fields, "choices")
            for piece in _objects(event.fields.get("choices")):
                choice |= _without(piece, "delta")
                delta = piece.get("delta")
                if isinstance(delta, dict):
                    message |= _without(delta, "tool_calls")
                    calls |= _by_index(delta.get("tool_calls"))
        if calls:
            message["tool_calls"] = [calls.get(index, {}) for index in range(max(calls) + 1)]
        choices.append(choice | {"message": message})
    yield {"choices": choices}


def _by_index(pieces: JsonValue) -> Iterator[tuple[int, JsonValue]]:
    for piece in _objects(pieces):
        index = piece.get("index")
        if isinstance(index, int) and 0 <= index < _CALLS_MAX:
            yield index, _without(piece, "index")


def _objects(values: JsonValue) -> Iterator[dict[str, JsonValue]]:
    for value in values if isinstance(values, list) else ():
        if isinstance(value, dict):
            yield value


def _without(fields: JsonObject, name: str) -> dict[str, JsonValue]:
    return {other: value for other, value in fields.items() if other != name}
