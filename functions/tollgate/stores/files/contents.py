"""The contents of files, as a bucket and a folder keep them."""

from typing import Protocol

from tollgate.core.files import FileDownload, SignedUpload
from tollgate.stores.aws.objects import ObjectHead


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

    async def move(self, key: str, to: str, media_type: str) -> None:
        """Move a content, in place of one with that key; a repeated move may find none."""

    async def close(self) -> None:
        """Close the connections."""
