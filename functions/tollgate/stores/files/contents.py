"""The contents of files, as a bucket and a folder keep them."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final, Protocol

from msgspec import Struct

from tollgate.core.files import FileDownload, SignedUpload
from tollgate.stores.aws.objects import ObjectHead

# At least the 5 MiB that S3 wants of each part but the last, and few enough to be held at a time.
PIECE_BYTES: Final = 8 * 1024 * 1024


class SourceRange(Struct, frozen=True):
    """So many bytes of a content, from a place on."""

    key: str
    start: int
    length: int


class FileContents(Protocol):
    """Contents by key; every method raises StoreUnavailable when they cannot be reached."""

    async def put(self, key: str, content: bytes, media_type: str) -> None:
        """Keep a content, in place of one with the same key."""

    async def delete(self, key: str) -> None:
        """Delete a content; one that does not exist is no error."""

    async def download(self, key: str, *, filename: str, media_type: str) -> FileDownload | None:
        """Return where the content is, as an attachment with this name; None if it is missing."""

    async def sign_upload(
        self, key: str, *, size_bytes: int, media_type: str
    ) -> SignedUpload | None:
        """Return an address to which a content of this size and type is sent; None if none can be.

        The address works for an hour.
        """

    async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
        """Return the size and the first bytes of a content; None if it is missing."""

    async def get_range(self, key: str, start: int, length: int) -> bytes:
        """Return so many bytes of a content from a place on; StoreRejected if it is missing."""

    async def join(
        self,
        sources: Sequence[tuple[str, int]],
        to: str,
        media_type: str,
        *,
        observe: Callable[[bytes], None],
    ) -> None:
        """Keep the contents of the sources, each with its size, one after another as one content.

        `observe` is given all of it in order, piece by piece.
        """

    async def delete_all(self, keys: Sequence[str]) -> None:
        """Delete at most 1,000 contents; one that does not exist is no error."""

    async def move(self, key: str, to: str, media_type: str) -> None:
        """Move a content, in place of one with that key; a repeated move may find none."""

    async def close(self) -> None:
        """Close the connections."""


def cut_into_pieces(sources: Sequence[tuple[str, int]]) -> Iterator[list[SourceRange]]:
    """Yield the pieces of contents one after another, each as the ranges that it is made of."""
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
