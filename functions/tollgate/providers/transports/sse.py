"""The decoder of server-sent events, from bytes that may be cut anywhere.

Rules: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream
(seen 2026-11-21). One departure: an event that lacks only its blank line when the stream closes is
still delivered, because some servers end that way; the codec decides whether it is whole.
"""

from typing import Final, NamedTuple

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.base import EVENT_BYTES_MAX

_BOM: Final = b"\xef\xbb\xbf"
_DATA: Final = b"data: "
_DATA_LENGTH: Final = len(_DATA)


class SseEvent(NamedTuple):
    """One event; `data` has its lines joined by a line feed."""

    event: str
    data: bytes


class SseDecoder:
    """Takes the bytes of one stream as they come."""

    def __init__(self, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        self._event_bytes_max = event_bytes_max
        self._line: list[bytes] = []
        self._event = ""
        self._data: list[bytes] = []
        self._size_bytes = 0
        self._after_cr = False
        self._first_line = True

    def feed(self, chunk: bytes) -> list[SseEvent]:
        """Return the events that these bytes complete; UpstreamError for one that is too large."""
        if not chunk:
            return []
        if self._after_cr:
            # The other half of a CRLF that was cut in two.
            chunk = chunk.removeprefix(b"\n")
        events: list[SseEvent] = []
        for line in chunk.splitlines(keepends=True):
            self._size_bytes += len(line)
            if self._size_bytes > self._event_bytes_max:
                raise UpstreamError(
                    ErrorCode.PROVIDER_UNAVAILABLE,
                    f"The provider sent an event of more than {self._event_bytes_max} bytes.",
                )
            if self._line or self._first_line or not line.endswith((b"\n", b"\r")):
                self._line.append(line)
                if line.endswith((b"\n", b"\r")):
                    self._end_line(events)
            # Nearly all lines are one of these two and whole: each takes the shorter way.
            elif line == b"\n":
                self._dispatch(events)
            elif line.startswith(_DATA):
                self._data.append(line[_DATA_LENGTH:].rstrip(b"\r\n"))
            else:
                self._take(line, events)
        self._after_cr = chunk.endswith(b"\r")
        return events

    def end(self) -> list[SseEvent]:
        """Return the event that was not closed by a blank line, if any."""
        events: list[SseEvent] = []
        if self._line:
            self._end_line(events)
        self._dispatch(events)
        return events

    def _end_line(self, events: list[SseEvent]) -> None:
        line = b"".join(self._line)
        self._line.clear()
        self._take(line, events)

    def _take(self, line: bytes, events: list[SseEvent]) -> None:
        line = line.rstrip(b"\r\n")
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            self._dispatch(events)
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._event = value.decode("utf-8", "replace")
        elif not name and not self._data:
            # Comments may go on for ever while a server waits; they belong to no event.
            self._size_bytes = 0

    def _dispatch(self, events: list[SseEvent]) -> None:
        if self._data:
            events.append(SseEvent(self._event or "message", b"\n".join(self._data)))
            self._data.clear()
        self._event = ""
        self._size_bytes = 0
