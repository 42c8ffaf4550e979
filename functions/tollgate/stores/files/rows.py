"""DynamoDB items that describe files, their keys, and the keys of the contents in S3."""

from collections.abc import Iterable
from typing import Final, cast, get_args

from msgspec import Struct

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files.stored import FILE_PREFIX, FilePurpose, StoredFile
from tollgate.core.ids import is_id
from tollgate.stores.aws.decoding import (
    decode_items,
    read_number,
    read_numbers_by_name,
    read_optional_number,
    read_optional_text,
    read_text,
    reads_an_item,
)
from tollgate.stores.aws.items import AnyItem, FileItem
from tollgate.stores.aws.tables import file_key, get_item
from tollgate.stores.rules.object_names import workspace_folder

ROWS: Final = "F#"
# Prefix of all objects that clients upload, until the file has been checked or joined.
UPLOADS: Final = "uploads/"


class FileChange(Struct, frozen=True, kw_only=True):
    """The attributes of a deleted file that the audit log shows."""

    filename: str
    purpose: FilePurpose
    size_bytes: int


def bare_id(file_id: str) -> str | None:
    """Return a file's id without its prefix; None if the text is not a file id."""
    bare = file_id.removeprefix(FILE_PREFIX)
    return bare if bare != file_id and is_id(bare) else None


def bare_id_of(file: StoredFile) -> str:
    """Return a file's id without its prefix, as in the keys of items and objects."""
    return file.id.removeprefix(FILE_PREFIX)


def key_of_file(file: StoredFile) -> Item:
    """Return the key of a file's item."""
    return file_key(file.workspace_id, bare_id_of(file))


def read_cursor(after: str) -> str:
    """Return the id, without prefix, after which a page begins; raise RequestError if it is
    invalid.
    """
    bare = bare_id(after)
    if bare is None:
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "after: must be the id of a file.", param="after"
        )
    return bare


def object_of(file: StoredFile) -> str:
    """Return the object key of a file's content.

    The bucket's lifecycle rules find expired files by the first two segments of the key, even in a
    workspace that is no longer used.
    """
    kept, expiring = objects_of(file.workspace_id, bare_id_of(file))
    return kept if file.expires_s is None else expiring


def objects_of(workspace_id: str, bare: str) -> tuple[str, str]:
    """Return the object keys of a file's content: without an expiry, and with one."""
    place = _place(workspace_id, bare)
    return f"files/kept/{place}", f"files/expiring/{place}"


def awaited_object_of(file: StoredFile) -> str:
    """Return the object key to which a client uploads; the sweeper deletes what is left over.

    This key differs from `object_of`, because a signed URL can be used until it expires, even after
    the file has been deleted.
    """
    return f"{UPLOADS}{_place(file.workspace_id, bare_id_of(file))}"


def part_object_of(file: StoredFile, part: str) -> str:
    """Return the object key of a part of an upload; the sweeper deletes leftover parts."""
    return f"{awaited_object_of(file)}/{part}"


def upload_of_object(key: str) -> str | None:
    """Return the id, without prefix, of the file to which an object under `UPLOADS` belongs."""
    names = key.removeprefix(UPLOADS).split("/")
    return names[1] if len(names) > 1 and is_id(names[1]) else None


def _place(workspace_id: str, bare: str) -> str:
    return f"{workspace_folder(workspace_id)}/{bare}"


def encode_file(file: StoredFile) -> Item:
    """Encode a file."""
    item: Item = {
        **key_of_file(file),
        FileItem.KEY: string(file.key_id),
        FileItem.FILENAME: string(file.filename),
        FileItem.PURPOSE: string(file.purpose),
        FileItem.MEDIA_TYPE: string(file.media_type),
        FileItem.SIZE: number(file.size_bytes),
        FileItem.CREATED: number(file.created_s),
    }
    if file.member_id is not None:
        item[FileItem.MEMBER] = string(file.member_id)
    if file.expires_s is not None:
        item[FileItem.EXPIRES] = number(file.expires_s)
    if file.awaited_until_s is not None:
        item[FileItem.AWAITED] = number(file.awaited_until_s)
    if file.parts is not None:
        item[FileItem.PARTS] = {"M": {id_: number(size) for id_, size in file.parts.items()}}
        item[FileItem.SENT] = number(sum(file.parts.values()))
    return item


@reads_an_item
def decode_file(item: Item) -> StoredFile:
    """Decode a file; raise CorruptItem if the item is invalid."""
    purpose = read_text(item, FileItem.PURPOSE)
    if purpose not in get_args(FilePurpose):
        raise ValueError(f"unknown purpose: {purpose!r}")
    return StoredFile(
        id=FILE_PREFIX + read_text(item, AnyItem.SORT).removeprefix(ROWS),
        workspace_id=read_text(item, AnyItem.PARTITION).removeprefix(ROWS),
        key_id=read_text(item, FileItem.KEY),
        member_id=read_optional_text(item, FileItem.MEMBER),
        filename=read_text(item, FileItem.FILENAME),
        purpose=cast(FilePurpose, purpose),
        media_type=read_text(item, FileItem.MEDIA_TYPE),
        size_bytes=read_number(item, FileItem.SIZE),
        created_s=read_number(item, FileItem.CREATED),
        expires_s=read_optional_number(item, FileItem.EXPIRES),
        awaited_until_s=read_optional_number(item, FileItem.AWAITED),
        parts=read_numbers_by_name(item, FileItem.PARTS) if FileItem.PARTS in item else None,
    )


def sort_files(
    rows: Iterable[Item], now_s: float
) -> tuple[list[StoredFile], list[StoredFile], list[str]]:
    """Return the current files, the files to remove, and the names of corrupt items."""
    current: list[StoredFile] = []
    removable: list[StoredFile] = []
    corrupt: list[str] = []
    for row in rows:
        files, names = decode_items(decode_file, [row])
        corrupt += names
        for file in files:
            (removable if file.is_expired(now_s) or is_being_deleted(row) else current).append(file)
    return current, removable, corrupt


def is_being_deleted(item: Item) -> bool:
    """Return True if a file is being deleted."""
    return read_optional_number(item, FileItem.DELETING) is not None


async def find_file(
    client: AwsCaller, table: str, workspace_id: str, file_id: str, *, now_s: float
) -> StoredFile | None:
    """Return a file of this workspace; None if it is missing, deleted or expired.

    A file whose upload in parts is incomplete counts as missing. For any other file, the content
    may not have arrived yet.
    """
    bare = bare_id(file_id)
    if bare is None:
        return None
    item = await get_item(client, table, file_key(workspace_id, bare))
    if item is None or is_being_deleted(item):
        return None
    file = decode_file(item)
    return None if file.parts is not None or file.is_expired(now_s) else file
