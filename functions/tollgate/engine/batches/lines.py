"""The lines of a batch's file, read in ranges so that memory does not grow with the file."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import Final

from msgspec import MsgspecError, Raw, Struct, field, json

from tollgate.core.batches import LINE_BYTES_MAX, LineFault
from tollgate.ingress.format_rows import IngressFormat
from tollgate.ingress.formats import (
    CHAT_COMPLETIONS,
    COMPLETIONS,
    EMBEDDINGS,
    MESSAGES,
    MODERATIONS,
    RESPONSES,
)

# Formats of lines, keyed by the path that lines and batches name.
BATCH_FORMATS: Final[Mapping[str, IngressFormat]] = {
    format_.path: format_
    for format_ in (
        CHAT_COMPLETIONS,
        RESPONSES,
        EMBEDDINGS,
        COMPLETIONS,
        MODERATIONS,
        MESSAGES,
    )
}
_RANGE_BYTES: Final = 8 * 1024 * 1024
_CUSTOM_ID_MAX: Final = 512


class BatchLine(Struct, frozen=True, kw_only=True):
    """One request of a file."""

    number: int
    custom_id: str
    body: bytes


class RawLine(Struct, frozen=True):
    """The bytes of one line, and their offset in the file."""

    number: int
    start: int
    content: bytes
    end: int
    """The offset after the line's newline."""


class _FileLine(Struct, frozen=True, kw_only=True):
    custom_id: str
    method: str
    url: str
    body: Raw = field(default_factory=lambda: Raw(b""))


_DECODER: Final = json.Decoder(_FileLine)


class FaultyLine(Exception):
    """Raised for an invalid line."""

    def __init__(self, fault: LineFault) -> None:
        super().__init__(fault.message)
        self.fault = fault


async def read_lines(
    read: Callable[[int, int], Awaitable[bytes]],
    start: int,
    end: int,
    *,
    first: int = 1,
) -> AsyncIterator[Sequence[RawLine]]:
    """Yield the lines that begin in a range of a file, in groups, without empty lines.

    `read` returns a range, given by its start and length, and `first` is the number of the first
    line. Raises FaultyLine for a line that is too long.
    """
    number, rest, place = first, b"", start
    while place < end:
        length = min(_RANGE_BYTES, end - place)
        block = rest + await read(place, length)
        at, place = place - len(rest), place + length
        *whole, rest = block.split(b"\n")
        if place == end and rest:
            whole, rest = [*whole, rest], b""
        lines = list[RawLine]()
        for content in whole:
            after = at + len(content) + 1
            if len(content) > LINE_BYTES_MAX:
                raise _too_long(number)
            if content.strip():
                lines.append(RawLine(number, at, content, min(after, end)))
            number, at = number + 1, after
        if len(rest) > LINE_BYTES_MAX:
            raise _too_long(number)
        yield lines


def parse_line(raw: RawLine, endpoint: str) -> BatchLine:
    """Return the request in a line; raise FaultyLine, which names the field, if it is invalid."""
    try:
        line = _DECODER.decode(raw.content)
    except UnicodeDecodeError as not_text:
        raise _fault(raw, "invalid_json_line", "the line is not UTF-8 text") from not_text
    except (MsgspecError, RecursionError) as invalid:
        raise _fault(raw, "invalid_json_line", f"the line is no request: {invalid}") from invalid
    body = bytes(line.body).strip()
    if not 0 < len(line.custom_id) <= _CUSTOM_ID_MAX:
        message = f"custom_id must have 1 to {_CUSTOM_ID_MAX} characters"
        raise _fault(raw, "invalid_custom_id", message, "custom_id")
    if line.method != "POST":
        raise _fault(raw, "invalid_method", "method must be POST", "method")
    if _path(line.url) != endpoint:
        message = f"url is {line.url!r}, but the batch has the endpoint {endpoint!r}"
        raise _fault(raw, "mismatched_endpoint", message, "url")
    if not body.startswith(b"{"):
        raise _fault(raw, "missing_body", "body must be a JSON object", "body")
    return BatchLine(number=raw.number, custom_id=line.custom_id, body=body)


def _path(url: str) -> str:
    """Return the path without the `/api` prefix of the base URL, which some clients include."""
    return url.removeprefix("/api") if url.startswith("/api/v1/") else url


def _too_long(number: int) -> FaultyLine:
    message = f"the line has more than {LINE_BYTES_MAX:,} bytes"
    return FaultyLine(LineFault(code="line_too_long", message=message, line=number))


def _fault(raw: RawLine, code: str, message: str, param: str | None = None) -> FaultyLine:
    return FaultyLine(LineFault(code=code, message=message, line=raw.number, param=param))
