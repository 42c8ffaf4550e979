"""The decoder of server-sent events, for chunks that may split events anywhere.

Rules: https://html.spec.whatwg.org/multipage/server-sent-events.html#parsing-an-event-stream (seen
2026-11-21). There is one difference: the last event may lack its blank line, because some servers
omit that line. The codec decides whether the event is complete.
"""

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Final

from tollgate.core.errors import ErrorCode, UpstreamError
from tollgate.providers.ports.base import EVENT_BYTES_MAX, Frame

_BOM: Final = b"\xef\xbb\xbf"
_DATA: Final = b"data: "
_DATA_LENGTH: Final = len(_DATA)
_NEXT_DATA: Final = b"\n\n" + _DATA
_EVENT: Final = b"event: "
_EVENT_LENGTH: Final = len(_EVENT)


class SseDecoder:
    """Decodes the bytes of one stream as they arrive; a frame has all data lines of an event."""

    def __init__(self, event_bytes_max: int = EVENT_BYTES_MAX) -> None:
        self._event_bytes_max = event_bytes_max
        self._line: list[bytes] = []
        self._event = ""
        self._data: list[bytes] = []
        self._size_bytes = 0
        self._after_cr = False
        self._first_line = True

    def feed(self, chunk: bytes) -> Iterable[Frame]:
        """Return the events that these bytes complete.

        If an event is too large, iterating yields the events before it and raises UpstreamError.
        """
        if not chunk:
            return []
        if self._after_cr:
            # The previous chunk ended between CR and LF.
            chunk = chunk.removeprefix(b"\n")
        events: list[Frame] = []
        self._after_cr = chunk.endswith(b"\r")
        fits = True
        if self._size_bytes or self._event:
            rest_of_event, end, chunk = chunk.partition(b"\n\n")
            fits = self._take_lines(rest_of_event + end, events)
        if fits and (rest := self._take_plain(chunk, events)):
            fits = self._take_lines(rest, events)
        return events if fits else chain(events, self._refuse())

    def _take_lines(self, chunk: bytes, events: list[Frame]) -> bool:
        """Decode bytes line by line; return False if an event is too large."""
        for line in chunk.splitlines(keepends=True):
            self._size_bytes += len(line)
            if self._size_bytes > self._event_bytes_max:
                return False
            if self._line or self._first_line or not line.endswith((b"\n", b"\r")):
                self._line.append(line)
                if line.endswith((b"\n", b"\r")):
                    self._end_line(events)
            # Fast paths for the two most frequent lines, if they are complete.
            elif line == b"\n":
                self._dispatch(events)
            elif line.startswith(_DATA):
                self._data.append(line[_DATA_LENGTH:].rstrip(b"\r\n"))
            else:
                self._take(line, events)
        return True

    def _take_plain(self, chunk: bytes, events: list[Frame]) -> bytes:
        """Decode the complete plain events at the beginning of a chunk, and return the rest.

        A plain event has one line of data, and optionally an event name before it.
        """
        if b"\r" in chunk or len(chunk) > self._event_bytes_max:
            return chunk
        whole, end, rest = chunk.rpartition(b"\n\n")
        if not end:
            return chunk
        if whole.startswith(_DATA):
            unnamed = whole[_DATA_LENGTH:].split(_NEXT_DATA)
            # No line break is inside an event, so each event is one line of data.
            if whole.count(b"\n") == 2 * (len(unnamed) - 1):
                events += [Frame(data=data) for data in unnamed]
                self._first_line = False
                return rest
        blocks = whole.split(b"\n\n")
        for place, block in enumerate(blocks):
            name, line = "message", block
            if block.startswith(_EVENT):
                named, _, line = block.partition(b"\n")
                name = named[_EVENT_LENGTH:].decode("utf-8", "replace") or name
            if not line.startswith(_DATA) or b"\n" in line:
                return b"\n\n".join([*blocks[place:], rest])
            events.append(Frame(data=line[_DATA_LENGTH:], event=name))
            self._first_line = False
        return rest

    def _refuse(self) -> Iterator[Frame]:
        yield from ()
        raise UpstreamError(
            ErrorCode.PROVIDER_UNAVAILABLE,
            f"The provider sent an event of more than {self._event_bytes_max} bytes.",
        )

    def end(self) -> list[Frame]:
        """Return the last event, if no blank line has ended it."""
        events: list[Frame] = []
        if self._line:
            self._end_line(events)
        self._dispatch(events)
        return events

    def _end_line(self, events: list[Frame]) -> None:
        line = b"".join(self._line)
        self._line.clear()
        self._take(line, events)

    def _take(self, line: bytes, events: list[Frame]) -> None:
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
            # A waiting server may send any number of comments, which do not count as part of an
            # event.
            self._size_bytes = 0

    def _dispatch(self, events: list[Frame]) -> None:
        if self._data:
            events.append(Frame(data=b"\n".join(self._data), event=self._event or "message"))
            self._data.clear()
        self._event = ""
        self._size_bytes = 0
