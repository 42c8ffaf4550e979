"""Renders answers in OpenAI's Responses format, as a stream of events or as a single response.

A stream consists of `response.created`, `response.in_progress`, the items, and a last event with
the complete response. https://platform.openai.com/docs/api-reference/responses (2026-11-22)
"""

from collections.abc import Iterator, Sequence
from decimal import Decimal
from itertools import chain
from typing import Final, Literal, assert_never

from pydantic_core import to_json

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
from tollgate.ingress.base import ParsedCall, ServedBy
from tollgate.ingress.responses.errors import error_event, response_error
from tollgate.ingress.responses.output import OutputWriter
from tollgate.ingress.responses.repeated import used_fields
from tollgate.ingress.shared.accounts import ReplyAccounts, write_usage

# OpenAI's service tiers; clients reject any other value. Other tiers have the standard price.
_SERVICE_TIERS: Final = frozenset(
    {"auto", "default", "flex", "scale", "priority", "fast", "ultrafast"}
)
_STANDARD_TIER: Final = "default"
# The first events of a background response, which are sent before a worker begins.
QUEUED_EVENTS: Final = ("response.created", "response.queued")
_LAST: Final = ("response.completed", "response.incomplete")
_INCOMPLETE: Final[dict[Finish, str]] = {
    "length": "max_output_tokens",
    "content_filter": "content_filter",
}


class ResponseRenderer:
    """Renders one reply as a stream of events or as one response."""

    def __init__(self, call: ParsedCall, served: ServedBy, *, credits_per_usd: Decimal) -> None:
        self._served = served
        self._accounts = ReplyAccounts(served, credits_per_usd, call.tells_routing, write_usage)
        self._namespaces = call.namespaces
        self._is_stored = call.stored_input is not None
        self._requested_tier = call.request.service_tier
        self._is_background = call.background
        self._writer = self._new_writer()
        self._has_begun = False
        self._finish: Finish = "stop"
        self._head = to_json(
            {
                "id": f"resp_{served.generation_id}",
                "object": "response",
                "created_at": served.created_s,
                "model": served.model,
                "background": call.background,
                **used_fields(call.repeated, served.adapted),
            }
        )[:-1]

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        match event:
            case PartStart() | PartDelta() | PartNote() | PartEnd():
                return self._writer.feed(event)
            case Started():
                return self._begin()
            case UsageReported() | Output() | Partial() | UnknownFields():
                return b""
            case Ended(finish=finish):
                self._finish = finish
                return self._writer.finish(cut_short=finish == "length")
            case _:
                assert_never(event)

    def close(self, record: GenerationRecord) -> bytes:
        """Render the last event of a complete stream, which contains the response."""
        response = self._response(self._finish, self._writer.output, record)
        kind = "incomplete" if self._finish in _INCOMPLETE else "completed"
        return self._writer.frame(f"response.{kind}", b'"response":' + response)

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        state: dict[str, JsonValue] = {
            "status": "failed",
            "completed_at": None,
            "store": False,
            "error": {**response_error(error)},
            "incomplete_details": None,
        }
        first_frames = self._begin()
        error_frame = self._writer.frame(
            "error", to_json(error_event(error, self._served.generation_id))[1:-1]
        )
        failed = b'"response":' + self._complete(state, self._writer.output, record)
        return first_frames + error_frame + self._writer.frame("response.failed", failed)

    def pass_on(self, type_: str, fields: JsonObject) -> bytes:
        """Render a provider's event of unknown type."""
        return self._writer.pass_on(type_, fields)

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        (response,) = responses
        writer = self._new_writer()
        return self._response(response.finish, writer.write_whole(response), record)

    def _new_writer(self) -> OutputWriter:
        return OutputWriter(
            self._served.generation_id,
            self._namespaces,
            is_stored=self._is_stored,
            first_number=len(QUEUED_EVENTS) if self._is_background else 0,
        )

    def begun(self, status: Literal["queued", "in_progress"]) -> bytes:
        """Render the response before its answer."""
        state: dict[str, JsonValue] = {
            "store": self._is_stored,
            "status": status,
            "completed_at": None,
            "error": None,
            "incomplete_details": None,
            "output": [],
            "service_tier": _tier(self._requested_tier, "auto"),
            "usage": None,
        }
        return b"%b,%b" % (self._head, to_json(state)[1:])

    def _begin(self) -> bytes:
        """Return the first events of the stream; return no bytes after the first call."""
        if self._has_begun:
            return b""
        self._has_begun = True
        content = b'"response":' + self.begun("in_progress")
        # The events that say that a background response exists precede those of the worker.
        kinds = () if self._is_background else ("created",)
        return b"".join(
            self._writer.frame(f"response.{kind}", content) for kind in (*kinds, "in_progress")
        )

    def _response(self, finish: Finish, output: list[bytes], record: GenerationRecord) -> bytes:
        reason = _INCOMPLETE.get(finish)
        ended_s = self._served.created_s + record.duration_ms // 1_000
        state: dict[str, JsonValue] = {
            # "store" is in `adapted` if storing the response failed.
            "store": self._is_stored and "store" not in record.adapted,
            "status": "incomplete" if reason else "completed",
            "completed_at": None if reason else ended_s,
            "error": None,
            "incomplete_details": {"reason": reason} if reason else None,
        }
        return self._complete(state, output, record)

    def _complete(
        self, state: dict[str, JsonValue], output: list[bytes], record: GenerationRecord
    ) -> bytes:
        """Return the response; `state` has the fields that precede the output."""
        return b'%b,%b,"output":[%b],"service_tier":%b,%b}' % (
            self._head,
            to_json(state)[1:-1],
            b",".join(output),
            to_json(_tier(record.service_tier, _STANDARD_TIER)),
            self._accounts.render(record),
        )


def unknown_of_response(unknown: Sequence[Sequence[UnknownFields]]) -> Iterator[JsonObject]:
    """Yield the unknown fields of the last event's response, which is the whole response."""
    for event in chain.from_iterable(unknown):
        match event:
            case UnknownFields(place=place, fields={"response": dict(response)}) if place in _LAST:
                yield response
            case _:
                pass


def _tier(tier: str | None, default: str) -> str:
    return tier if tier in _SERVICE_TIERS else default
