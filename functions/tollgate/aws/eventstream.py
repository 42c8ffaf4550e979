"""AWS event-stream framing: bytes to messages; botocore checks lengths and CRCs.

Framing: https://smithy.io/2.0/aws/amazon-eventstream.html (seen 2026-11-21). This module imports
botocore, so only providers on AWS may import it.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

import pydantic_core
from botocore.eventstream import (  # type: ignore[import-untyped]  # botocore ships no types
    EventStreamBuffer,
    ParserError,
)

from tollgate.core.errors import ErrorCode, UpstreamError

MESSAGE_BYTES_MAX: Final = 1024 * 1024


class EventStreamMessage(NamedTuple):
    """One message; `exception` is its exception type, None for an event."""

    event: str
    exception: str | None
    payload: bytes


class EventStreamDecoder:
    """Decodes the bytes of one stream as they arrive."""

    def __init__(self) -> None:
        self._buffer = EventStreamBuffer()
        self._pending_bytes = 0

    def feed(self, chunk: bytes) -> Iterator[EventStreamMessage]:
        """Yield the messages that these bytes complete; the caller reads them to the end.

        Raises UpstreamError, after the messages before it, for a message that is damaged or longer
        than MESSAGE_BYTES_MAX.
        """
        self._pending_bytes += len(chunk)
        self._buffer.add_data(chunk)
        try:
            for message in self._buffer:
                self._pending_bytes -= message.prelude.total_length
                yield _message(message.headers, message.payload)
        except ParserError as damaged:
            raise _broken("sent a damaged message") from damaged
        if self._pending_bytes > MESSAGE_BYTES_MAX:
            raise _broken(f"sent a message of more than {MESSAGE_BYTES_MAX} bytes")

    def end(self) -> list[EventStreamMessage]:
        """Return no messages; raise UpstreamError if the stream closed within a message."""
        if self._pending_bytes:
            raise _broken("closed the stream in the middle of a message")
        return []


def _message(headers: dict[str, object], payload: bytes) -> EventStreamMessage:
    match headers.get(":message-type"):
        case "event":
            return EventStreamMessage(str(headers.get(":event-type")), None, payload)
        case "exception":
            return EventStreamMessage("exception", str(headers.get(":exception-type")), payload)
        case "error":
            # An error has its words in headers and no payload.
            said = pydantic_core.to_json({"message": str(headers.get(":error-message", ""))})
            return EventStreamMessage("error", str(headers.get(":error-code")), said)
        case kind:
            raise _broken(f"sent a message of the unknown type {str(kind)[:40]!r}")


def _broken(what: str) -> UpstreamError:
    return UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, f"The provider {what}.")
