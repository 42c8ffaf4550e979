"""Metadata of uploaded files, and the storage limits of keys and workspaces."""

import unicodedata
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from tollgate.core.errors import ErrorCode, RequestError

# The purposes of uploaded files. The gateway itself writes those of the purposes in `FilePurpose`.
UploadPurpose = Literal["assistants", "batch", "user_data", "vision"]
FilePurpose = Literal[UploadPurpose, "batch_output", "video_output"]

FILE_PREFIX: Final = "file-"
UPLOAD_PREFIX: Final = "upload_"
PART_PREFIX: Final = "part_"
# The path under which a host without a bucket accepts uploads to signed URLs.
LOCAL_UPLOADS: Final = "/v1/files/presigned/"
# The number of seconds for which an upload URL is valid.
UPLOAD_S: Final = 3_600
FILENAME_LENGTH_MAX: Final = 255
_UNNAMED: Final = "file"
# Unicode categories of characters that are not displayed: controls, formats, surrogates,
# separators.
_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})


class StoredFile(Struct, frozen=True, kw_only=True):
    """The metadata of an uploaded file."""

    id: str
    """An id with the prefix `file-`; later files have higher ids."""
    workspace_id: str
    key_id: str
    """The key that uploaded the file. The file counts toward this key's storage limit."""
    member_id: str | None = None
    """The member that owns the file (`Principal.owner` at the time of the upload); None if there is
    none.
    """
    filename: str
    purpose: FilePurpose
    media_type: str
    """The type that was detected from the first bytes."""
    size_bytes: int
    created_s: int
    expires_s: int | None = None
    """The Unix second at which the file expires; None to keep it until it is deleted."""
    awaited_until_s: int | None = None
    """The Unix second until which the content may arrive; None once it has arrived."""
    parts: Mapping[str, int] | None = None
    """The size of each uploaded part, keyed by its id; None unless an upload in parts is in
    progress.
    """

    def is_expired(self, now_s: float) -> bool:
        """Return whether the file has expired, or its content did not arrive in time."""
        ends = (self.expires_s, self.awaited_until_s)
        return any(end_s is not None and end_s <= now_s for end_s in ends)


class FoundFile(Struct, frozen=True, kw_only=True):
    """A completely uploaded file that a request refers to; `place` is the key of its content."""

    place: str
    member_id: str | None = None
    """The member that owns the file; None if there is none."""
    filename: str
    media_type: str
    size_bytes: int


class NewFile(Struct, frozen=True, kw_only=True):
    """The metadata of a file to be stored."""

    workspace_id: str
    key_id: str
    member_id: str | None = None
    """The member that owns the file; None if there is none."""
    filename: str
    purpose: FilePurpose
    media_type: str
    expires_after_s: int | None = None
    """Seconds from its creation until the file expires; None to keep it until it is deleted."""
    is_funded: bool = True
    """True if the workspace has credit."""


class FileDownload(Struct, frozen=True, kw_only=True):
    """The source from which to download a file; exactly one field is set."""

    url: str | None = None
    """A URL that needs no key and is valid for minutes."""
    path: Path | None = None
    """A file on this machine."""


class PartialUpload(Struct, frozen=True, kw_only=True):
    """The upload of a file in parts."""

    id: str
    """An id with the prefix `upload_`."""
    file: StoredFile
    """The file as it will be once the upload is complete."""
    status: Literal["pending", "completed", "cancelled"]
    expires_s: int
    """The Unix second from which the upload accepts no parts."""


class SignedUpload(Struct, frozen=True, kw_only=True):
    """A URL to which the content of a file is sent by PUT, with exactly these headers."""

    url: str
    headers: Mapping[str, str]
    expires_s: int
    """The Unix second at which the URL expires."""


class FileCap(Struct, frozen=True, kw_only=True):
    """The maximum number of files and bytes that a workspace or a key may store."""

    files_max: int
    bytes_max: int


class FileCaps(Struct, frozen=True, kw_only=True):
    """The limits on uploaded files."""

    file_bytes_max: int
    """The size limit of one file."""
    workspace: FileCap
    unfunded: FileCap
    """The cap of a workspace that has no credit."""
    key: FileCap

    def of_workspace(self, *, is_funded: bool) -> FileCap:
        """Return the cap of a workspace with or without credit."""
        return self.workspace if is_funded else self.unfunded


class FileUsage(Struct, frozen=True, kw_only=True):
    """The files that a workspace stores, including files that are still being uploaded."""

    files: int = 0
    size_bytes: int = 0


def check_size(size_bytes: int, bytes_max: int, field: str) -> None:
    """Raise RequestError for a file that is larger than the limit."""
    if size_bytes > bytes_max:
        raise RequestError(
            ErrorCode.FILE_TOO_LARGE,
            f"{field}: the file has {size_bytes:,} bytes, and the limit is {bytes_max:,}.",
            param=field,
        )


def clean_filename(name: str) -> str:
    """Return the file name at the end of a client's path, cut to 255 characters and without
    invisible ones.
    """
    base = name.replace("\\", "/").rpartition("/")[2]
    shown = "".join(char for char in base if unicodedata.category(char) not in _HIDDEN).strip()
    if shown in ("", ".", ".."):
        return _UNNAMED
    if len(shown) <= FILENAME_LENGTH_MAX:
        return shown
    stem, dot, suffix = shown.rpartition(".")
    if not dot or len(suffix) > 16:
        return shown[:FILENAME_LENGTH_MAX]
    return f"{stem[: FILENAME_LENGTH_MAX - len(suffix) - 1]}.{suffix}"
