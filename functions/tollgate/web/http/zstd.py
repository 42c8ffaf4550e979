"""Decompression of zstd, by the module of Python 3.14 or its backport."""

import sys
from typing import Final

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

# RFC 9659: a window of 8 MB is the most that a receiver of this content coding must have.
_WINDOW_LOG_MAX: Final = 23


class ZstdStream:
    """One frame, as `body_decoding.Decompressor`."""

    def __init__(self) -> None:
        limits: dict[int, int] = {zstd.DecompressionParameter.window_log_max: _WINDOW_LOG_MAX}
        self._stream = zstd.ZstdDecompressor(options=limits)

    @property
    def eof(self) -> bool:
        """True once the frame has ended."""
        return self._stream.eof

    @property
    def unused_data(self) -> bytes:
        """The bytes after the frame."""
        return self._stream.unused_data

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        """Return at most `max_length` bytes; raise ValueError if the frame is corrupt."""
        try:
            return self._stream.decompress(data, max_length)
        except zstd.ZstdError as corrupt:
            raise ValueError(str(corrupt)) from corrupt
