"""Uploaded files: what is known of one, and how much a key and its workspace may keep."""

import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from tollgate.core.errors import ErrorCode, RequestError

FilePurpose = Literal["assistants", "batch", "user_data", "vision"]

FILE_PREFIX: Final = "file-"
UPLOAD_PREFIX: Final = "upload_"
PART_PREFIX: Final = "part_"
# The path below which a host without a bucket takes contents by signed addresses.
LOCAL_UPLOADS: Final = "/v1/files/presigned/"
FILENAME_LENGTH_MAX: Final = 255
_UNNAMED: Final = "file"
# Categories of Unicode that no name shows: controls, formats (which turn text around), surrogates.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class StoredFile(Struct, frozen=True, kw_only=True):
    """A file without its content."""

    # With the prefix `file-`; later files have higher ids.
    id: str
    workspace_id: str
    # The key that uploaded it, whose storage it takes.
    key_id: str
    # The member that the key had then, None for a key that stood alone.
    member_id: str | None = None
    filename: str
    purpose: FilePurpose
    # As its first bytes show it.
    media_type: str
    size_bytes: int
    created_s: int
    # The Unix second from which it is not found, None for a file that is kept until it is deleted.
    expires_s: int | None = None
    # The Unix second until which its content may arrive, None once it has.
    awaited_until_s: int | None = None
    # The bytes of the parts that its upload has by now, by their ids; None if it is not uploaded in
    # parts, or has them all.
    parts: Mapping[str, int] | None = None

    def is_expired(self, now_s: float) -> bool:
        """Return whether the file is not found any more."""
        ends = (self.expires_s, self.awaited_until_s)
        return any(it is not None and it <= now_s for it in ends)


class FoundFile(Struct, frozen=True, kw_only=True):
    """A file as a request needs it: its content is there, and is read by its place."""

    place: str
    filename: str
    media_type: str
    size_bytes: int


class NewFile(Struct, frozen=True, kw_only=True):
    """A file that is to be stored, without its content."""

    workspace_id: str
    key_id: str
    # The member of the key, None for a key that stands alone.
    member_id: str | None = None
    filename: str
    purpose: FilePurpose
    media_type: str
    # Seconds after its creation at which it expires, None for a file that is kept.
    expires_after_s: int | None = None


class FileDownload(Struct, frozen=True, kw_only=True):
    """The place from which the content of a file is sent; one of both is given."""

    # An address that needs no key and is valid for minutes.
    url: str | None = None
    # A file of this machine.
    path: Path | None = None


class PartialUpload(Struct, frozen=True, kw_only=True):
    """The upload of a file in parts."""

    # With the prefix `upload_`.
    id: str
    # The file as it is once it is complete.
    file: StoredFile
    status: Literal["pending", "completed", "cancelled"]
    # The Unix second from which it takes nothing.
    expires_s: int


class SignedUpload(Struct, frozen=True, kw_only=True):
    """An address to which the content of a file is sent by PUT, with exactly these headers."""

    url: str
    headers: Mapping[str, str]
    # Unix second.
    expires_s: int


class FileCap(Struct, frozen=True, kw_only=True):
    """The most files, and bytes of files, that a workspace or a key may keep."""

    files_max: int
    bytes_max: int


class FileCaps(Struct, frozen=True, kw_only=True):
    """The limits on uploaded files."""

    # Of one file.
    file_bytes_max: int
    workspace: FileCap
    key: FileCap


class FileUsage(Struct, frozen=True, kw_only=True):
    """The files that a workspace keeps, those that are being uploaded included."""

    files: int = 0
    size_bytes: int = 0


def check_size(size_bytes: int, bytes_max: int, field: str) -> None:
    """Raise RequestError for a file that is larger than any may be."""
    if size_bytes > bytes_max:
        raise RequestError(
            ErrorCode.FILE_TOO_LARGE,
            f"{field}: a file of {size_bytes:,} bytes, and {bytes_max:,} are the most it may have.",
            param=field,
        )


def clean_filename(name: str) -> str:
    """Return the last part of a path that a client sent, without hidden characters, at most 255."""
    base = name.replace("\\", "/").rpartition("/")[2]
    shown = "".join(it for it in base if unicodedata.category(it) not in _HIDDEN).strip()
    if shown in ("", ".", ".."):
        return _UNNAMED
    if len(shown) <= FILENAME_LENGTH_MAX:
        return shown
    stem, dot, suffix = shown.rpartition(".")
    if not dot or len(suffix) > 16:
        return shown[:FILENAME_LENGTH_MAX]
    return f"{stem[: FILENAME_LENGTH_MAX - len(suffix) - 1]}.{suffix}"
