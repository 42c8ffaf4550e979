"""Adds to a reply what a provider of the client's own format sent and the gateway does not know.

Unknown fields of a frame are added to the next frame of the same type, and an unknown frame is sent
unchanged. Known fields are never replaced.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from pydantic_core import from_json, to_json

from tollgate.core.errors import GatewayError
from tollgate.core.events import StreamEvent, UnknownFields
from tollgate.core.json_value import JsonObject, JsonValue
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.response import GenerationResponse
from tollgate.core.unknown_fields import add_unknown
from tollgate.ingress.base import Renderer

# Unknown content beyond this size is dropped from a reply.
UNKNOWN_BYTES_MAX: Final = 1_000_000
_END: Final = b"\n\n"
_DATA: Final = b"data: "

# Returns the fields of a whole reply that have the unknown fields of its choices, in order.
PlaceInWhole = Callable[[Sequence[Sequence[UnknownFields]]], Iterable[JsonObject]]

# Writes an unknown frame with its type.
WriteFrame = Callable[[str, JsonObject], bytes]


class UnknownFrames:
    """A renderer of `wire_format` that adds unknown fields to what another renderer writes."""

    def __init__(
        self,
        renderer: Renderer,
        wire_format: str,
        in_whole: PlaceInWhole,
        write_frame: WriteFrame | None = None,
    ) -> None:
        self._renderer = renderer
        self._wire_format = wire_format
        self._in_whole = in_whole
        self._write_frame = write_frame or _as_it_came
        self._left = UNKNOWN_BYTES_MAX
        self._fields: dict[tuple[int, str], JsonObject] = {}
        """The fields that wait for the next frame of a choice and a type."""
        self._frames = b""
        self._has_begun = False

    def feed(self, event: StreamEvent, choice: int = 0) -> bytes:
        if isinstance(event, UnknownFields):
            self._take(event, choice)
            written = b""
        else:
            written = self._renderer.feed(event, choice)
            # Most streams have no unknown fields, and one call less per event matters.
            if self._fields:
                written = self._merged(written, choice)
        self._has_begun = self._has_begun or bool(written)
        if self._frames and self._has_begun:
            written, self._frames = written + self._frames, b""
        return written

    def close(self, record: GenerationRecord) -> bytes:
        return self._merged(self._renderer.close(record), 0)

    def fail(self, error: GatewayError, record: GenerationRecord) -> bytes:
        return self._renderer.fail(error, record)

    def whole(self, responses: Sequence[GenerationResponse], record: GenerationRecord) -> bytes:
        body = self._renderer.whole(responses, record)
        unknown = [list(filter(self._fits, response.unknown)) for response in responses]
        if not any(unknown):
            return body
        whole: dict[str, JsonValue] = from_json(body)
        for tree in self._in_whole(unknown):
            whole = add_unknown(whole, tree)
        return to_json(whole)

    def _fits(self, event: UnknownFields) -> bool:
        """Return whether an event is of this format, and small enough; count its size."""
        if event.wire_format != self._wire_format:
            return False
        self._left -= len(to_json(event.fields))
        return self._left >= 0

    def _take(self, event: UnknownFields, choice: int) -> None:
        if not self._fits(event):
            return
        if event.is_frame:
            self._frames += self._write_frame(event.place, event.fields)
        else:
            key = choice, event.place
            # Several frames may precede the next frame of the reply, and the last value counts.
            self._fields[key] = add_unknown(event.fields, self._fields.get(key, {}))

    def _merged(self, written: bytes, choice: int) -> bytes:
        """Return frames of a choice with the unknown fields that wait for them."""
        if not written or not self._fields:
            return written
        frames = written.split(_END)
        return _END.join(self._merged_frame(frame, choice) for frame in frames)

    def _merged_frame(self, frame: bytes, choice: int) -> bytes:
        head, found, data = frame.rpartition(_DATA)
        kind = head.strip().removeprefix(b"event: ").decode()
        if not found or not data.startswith(b"{") or (choice, kind) not in self._fields:
            return frame
        content: Mapping[str, JsonValue] = from_json(data)
        return head + _DATA + to_json(add_unknown(content, self._fields.pop((choice, kind))))


def _as_it_came(type_: str, fields: JsonObject) -> bytes:
    return b"event: %b\n%b%b%b" % (type_.encode(), _DATA, to_json(fields), _END)
