"""The contents of files, as a bucket and a folder keep them."""

from typing import Protocol

from tollgate.core.files import FileDownload


class FileContents(Protocol):
    """Contents by key; every method raises StoreUnavailable when they cannot be reached."""

    async def put(self, key: str, content: bytes, media_type: str) -> None:
        """Keep a content, in place of one with the same key."""

    async def delete(self, key: str) -> None:
        """Delete a content; one that does not exist is no error."""

    async def download(self, key: str, *, filename: str, media_type: str) -> FileDownload | None:
        """Return where the content is, as an attachment with this name; None if it is missing."""

    async def close(self) -> None:
        """Close the connections."""
