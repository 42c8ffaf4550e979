"""The protocol for stores of file contents, implemented by a bucket and a folder."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from msgspec import Struct

from tollgate.aws.objects import ObjectHead
from tollgate.core.files.stored import FileDownload, SignedUpload

# Size of a piece: at least 5 MiB, which S3 requires for all parts but the last, yet small enough
# for several pieces to fit in memory.
PIECE_BYTES: Final = 8 * 1024 * 1024


class SourceRange(Struct, frozen=True):
    """A range of bytes in a stored file."""

    key: str
    start: int
    """Offset of the first byte."""
    length: int


class FileContents(Protocol):
    """File contents by key; every method raises StoreUnavailable if the store cannot be reached."""

    async def put(self, key: str, content: bytes, media_type: str) -> None:
        """Store a file, replacing any file with the same key."""

    async def delete(self, key: str) -> None:
        """Delete a file; ignore a missing file."""

    async def download(self, key: str, *, filename: str, media_type: str) -> FileDownload | None:
        """Return a file's download URL (as an attachment) or path; None if the file is missing."""

    async def sign_upload(
        self, key: str, *, size_bytes: int, media_type: str
    ) -> SignedUpload | None:
        """Return a URL for one upload within an hour; None if this is not supported."""

    async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
        """Return the size and the first bytes of a file; None if it is missing or empty."""

    async def get_range(self, key: str, start: int, length: int) -> bytes:
        """Return `length` bytes from offset `start`; raise StoreRejected if the file is missing."""

    async def join(
        self,
        sources: Sequence[tuple[str, int]],
        to: str,
        media_type: str,
        *,
        observe: Callable[[bytes], None],
    ) -> None:
        """Join the sources, given as keys and sizes, into one file.

        `observe` is called with all bytes in order, piece by piece.
        """

    async def delete_all(self, keys: Sequence[str]) -> None:
        """Delete up to 1,000 files; ignore missing files."""

    async def copy(self, key: str, to: str, media_type: str, *, etag: str) -> bool:
        """Copy the version `etag` of a file; return False if that version does not exist."""

    async def seal(self, key: str) -> None:
        """Replace a file with an empty one, which blocks further uploads to its signed URL."""

    async def close(self) -> None:
        """Close the connections."""


def cut_into_pieces(sources: Sequence[tuple[str, int]]) -> Iterator[list[SourceRange]]:
    """Yield the pieces of the concatenated sources, each as a list of ranges."""
    piece, room = list[SourceRange](), PIECE_BYTES
    for key, size_bytes in sources:
        start = 0
        while start < size_bytes:
            length = min(room, size_bytes - start)
            piece.append(SourceRange(key, start, length))
            start, room = start + length, room - length
            if not room:
                yield piece
                piece, room = [], PIECE_BYTES
    if piece:
        yield piece
