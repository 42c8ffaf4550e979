"""Decodes request bodies that clients send compressed (`Content-Encoding`).

RFC 9110, 8.4.1, defines gzip and deflate; RFC 8878 defines zstd.
"""

import zlib
from collections.abc import Callable, Iterator, Mapping
from typing import Final, Protocol

from tollgate.core.dotted_names import DottedName
from tollgate.core.errors import ErrorCode, RequestError, invalid_request

# Size of a step, after which other requests get a chance to run; a step takes about 0.2 ms.
STEP_BYTES: Final = 64 * 1024
# Conversations compress to a tenth of their size, so a body that expands a hundredfold is a
# decompression bomb. Content of up to `_ANY_RATIO_BYTES` may expand without limit.
_RATIO_MAX: Final = 100
_ANY_RATIO_BYTES: Final = 1_000_000
# First bytes of JSON objects and forms; no compressed body begins with them. API Gateway decodes
# gzip and deflate itself, and its documentation does not say that it removes the header ("Call an
# API method with a compressed payload", 2026-11-27).
_PLAIN: Final = (b"{", b"-")
_GZIP_BITS: Final = zlib.MAX_WBITS | 16


class Decompressor(Protocol):
    """Decodes one compressed stream in steps."""

    @property
    def eof(self) -> bool:
        """True once the stream has ended."""

    @property
    def unused_data(self) -> bytes:
        """The bytes after the end of the stream."""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Return at most `max_length` bytes; raise zlib.error or ValueError if they are corrupt."""


_OPEN_ZSTD: Final = DottedName[Callable[[], Decompressor]]("tollgate.web.http.zstd:ZstdStream")


def _open_zstd() -> Decompressor:
    try:
        return _OPEN_ZSTD()()
    except ModuleNotFoundError as absent:
        raise _unsupported("zstd", "gzip and deflate") from absent


_OPENERS: Final[Mapping[str, Callable[[], Decompressor]]] = {
    "gzip": lambda: zlib.decompressobj(_GZIP_BITS),
    "x-gzip": lambda: zlib.decompressobj(_GZIP_BITS),
    "deflate": zlib.decompressobj,
    "zstd": _open_zstd,
}


def _unsupported(coding: str, supported: str) -> RequestError:
    return RequestError(
        ErrorCode.UNSUPPORTED_ENCODING,
        f"Content-Encoding {coding[:40]!r} is not supported; use {supported}, or do not compress.",
    )


class BodyDecoder:
    """Decodes a body that arrives in pieces and consists of a single compressed stream."""

    def __init__(self, coding: str) -> None:
        """Raise RequestError if the value of Content-Encoding is not supported."""
        self._coding = coding.strip().lower()
        opener = _OPENERS.get(self._coding)
        if opener is None:
            raise _unsupported(self._coding, "gzip, deflate or zstd")
        self._decompressor: Decompressor | None = opener()
        self._taken = 0
        self._given = 0

    def decode(self, piece: bytes) -> Iterator[bytes]:
        """Decode the next piece in steps; raise RequestError if it is corrupt."""
        if self._taken == 0 and piece.startswith(_PLAIN):
            self._decompressor = None
        for start in range(0, len(piece), STEP_BYTES):
            part = piece[start : start + STEP_BYTES]
            self._taken += len(part)
            if self._decompressor is None:
                yield part
            else:
                yield from self._steps(self._decompressor, part)

    def end(self) -> None:
        """Raise RequestError unless the stream is complete."""
        if self._decompressor is not None and self._taken and not self._decompressor.eof:
            raise self._corrupt("it is incomplete")

    def _steps(self, decompressor: Decompressor, part: bytes) -> Iterator[bytes]:
        if decompressor.eof:
            raise self._corrupt("bytes follow its end")
        more = True
        while more:
            content = self._step(decompressor, part)
            yield content
            # zlib returns its unread input; zstd keeps the input itself.
            part = getattr(decompressor, "unconsumed_tail", b"")
            more = not decompressor.eof and (bool(part) or len(content) == STEP_BYTES)

    def _step(self, decompressor: Decompressor, part: bytes) -> bytes:
        try:
            content = decompressor.decompress(part, STEP_BYTES)
        except (zlib.error, ValueError) as corrupt:
            raise self._corrupt("it is corrupt") from corrupt
        if decompressor.unused_data:
            raise self._corrupt("bytes follow its end")
        self._given += len(content)
        if self._given > max(_ANY_RATIO_BYTES, _RATIO_MAX * self._taken):
            raise RequestError(
                ErrorCode.PAYLOAD_TOO_LARGE,
                f"The request expands to more than {_RATIO_MAX} times its compressed size.",
            )
        return content

    def _corrupt(self, fault: str) -> RequestError:
        return invalid_request(f"The body cannot be decoded as {self._coding}: {fault}.")
