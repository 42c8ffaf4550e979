"""Items of files: encoded as DynamoDB keeps them, and decoded."""

from collections.abc import Iterable
from hashlib import sha256
from typing import Final, cast, get_args

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files import FILE_PREFIX, FilePurpose, StoredFile
from tollgate.core.ids import is_id
from tollgate.stores.aws.attributes import Item, number, string
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
from tollgate.stores.aws.tables import file_key

ROWS: Final = "F#"


def bare_id(file_id: str) -> str | None:
    """Return the id of a file without its prefix, None if it is no id of a file."""
    bare = file_id.removeprefix(FILE_PREFIX)
    return bare if bare != file_id and is_id(bare) else None


def read_cursor(after: str) -> str:
    """Return the id, without its prefix, after which a page begins; RequestError if it is none."""
    bare = bare_id(after)
    if bare is None:
        raise RequestError(ErrorCode.INVALID_REQUEST, "after: no id of a file.", param="after")
    return bare


def object_of(file: StoredFile) -> str:
    """Return the key of a file's content.

    The bucket deletes by the first two steps what expires in a workspace that nobody uses.
    """
    return f"files/{'kept' if file.expires_s is None else 'expiring'}/{_place(file)}"


def awaited_object_of(file: StoredFile) -> str:
    """Return the key at which a content arrives; the bucket deletes what is left there for a day.

    A signed address may be written to until it expires, also once the file is checked.
    """
    return f"uploads/{_place(file)}"


def part_object_of(file: StoredFile, part: str) -> str:
    """Return the key of a part of an upload; the bucket deletes what is left there for a day."""
    return f"{awaited_object_of(file)}/{part}"


def _place(file: StoredFile) -> str:
    # A workspace's id comes from outside; its hash is safe as part of an object's key.
    workspace = sha256(file.workspace_id.encode()).hexdigest()[:32]
    return f"{workspace}/{file.id.removeprefix(FILE_PREFIX)}"


def encode_file(file: StoredFile) -> Item:
    """Encode a file."""
    item: Item = {
        **file_key(file.workspace_id, file.id.removeprefix(FILE_PREFIX)),
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
    """Decode a file; raise CorruptItem if it is none."""
    purpose = read_text(item, FileItem.PURPOSE)
    if purpose not in get_args(FilePurpose):
        raise ValueError(f"no purpose of a file: {purpose!r}")
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
    """Return the files that are found, those that are to be removed, and corrupt items' names."""
    found: list[StoredFile] = []
    gone: list[StoredFile] = []
    corrupt: list[str] = []
    for row in rows:
        files, names = decode_items(decode_file, [row])
        corrupt += names
        for file in files:
            (gone if file.is_expired(now_s) or is_being_deleted(row) else found).append(file)
    return found, gone, corrupt


def is_being_deleted(item: Item) -> bool:
    """Return whether the deletion of a file has been decided."""
    return read_optional_number(item, FileItem.DELETING) is not None
