"""Uploads in parts: each part is stored as an object, and the parts are joined when the upload is
completed.
"""

import hashlib
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import (
    ConditionFailed,
    StoreError,
    StoreRejected,
    refusing_when_unavailable,
)
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files.file_types import HEAD_BYTES, read_media_type
from tollgate.core.files.stored import (
    PART_PREFIX,
    UPLOAD_PREFIX,
    NewFile,
    PartialUpload,
    StoredFile,
)
from tollgate.core.ids import IdSource, is_id
from tollgate.stores.aws.decoding import read_optional_text
from tollgate.stores.aws.expressions import (
    FILE_APART,
    FILE_JOINED,
    FILE_JOINING,
    FILE_PART,
    FILE_PARTS_DELETING,
    ConditionalUpdate,
)
from tollgate.stores.aws.items import FileItem
from tollgate.stores.aws.tables import Tables, file_key, get_item, try_update
from tollgate.stores.files.contents import FileContents
from tollgate.stores.files.files import DynamoFileStore
from tollgate.stores.files.rows import (
    bare_id_of,
    decode_file,
    is_being_deleted,
    key_of_file,
    object_of,
    part_object_of,
)

# The expiry and the number of parts are the same as OpenAI's:
# https://platform.openai.com/docs/api-reference/uploads (2026-11-22)
UPLOAD_EXPIRES_S: Final = 3_600
UPLOAD_PARTS_MAX: Final = 1_000
# Twice the number of parts, because a client may retry each part whose reply was lost.
_TIMES_SENT_MAX: Final = 2


class DynamoUploadStore:
    """Implements `stores.ports.administration.UploadStore`."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        contents: FileContents,
        files: DynamoFileStore,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._client = client
        self._table = tables.core
        self._contents = contents
        self._files = files
        self._ids = ids
        self._clock = clock

    async def create(self, new: NewFile, size_bytes: int) -> PartialUpload:
        until_s = int(self._clock.now_s()) + UPLOAD_EXPIRES_S
        return _pending(await self._files.await_parts(new, size_bytes, until_s))

    async def file(self, workspace_id: str, upload_id: str) -> StoredFile | None:
        with refusing_when_unavailable():
            upload = await self._find(workspace_id, upload_id)
        return None if upload is None else upload[0]

    async def add_part(self, workspace_id: str, upload_id: str, content: bytes) -> str | None:
        with refusing_when_unavailable():
            upload = await self._find(workspace_id, upload_id)
            if upload is None or _is_over(upload[0], self._clock.now_s()):
                return None
            file, part = upload[0], self._ids.new_id()
            values = {
                ":x": number(len(content)),
                ":max": number(UPLOAD_PARTS_MAX),
                ":room": number(_TIMES_SENT_MAX * file.size_bytes - len(content)),
            }
            update = FILE_PART.build(self._table, key_of_file(file), values, {"#h": part})
            update["ReturnValuesOnConditionCheckFailure"] = "ALL_OLD"
            try:
                await self._client.call("UpdateItem", update)
            except ConditionFailed as failed:
                if failed.item is None or FileItem.JOINED in failed.item:
                    return None
                raise _refused(
                    "data",
                    f"an upload may have {UPLOAD_PARTS_MAX:,} parts, and "
                    f"{_TIMES_SENT_MAX} times the bytes of its file.",
                ) from failed
            await self._contents.put(
                part_object_of(file, part), content, "application/octet-stream"
            )
        return PART_PREFIX + part

    async def complete(
        self, workspace_id: str, upload_id: str, part_ids: Sequence[str], md5: str | None
    ) -> PartialUpload | None:
        with refusing_when_unavailable():
            upload = await self._find(workspace_id, upload_id)
            if upload is None:
                return None
            file, joined = upload
            order = hashlib.sha256("\n".join(part_ids).encode()).hexdigest()
            if file.parts is None:
                return _completed(file) if joined == order else None
            if _is_over(file, self._clock.now_s()):
                return None
            sources = _sources(file, part_ids)
            if not await self._try(FILE_JOINING, file, {":jn": string(order)}):
                raise _refused(
                    "part_ids", "another request is completing the upload with other parts."
                )
            try:
                media_type = await self._join(file, sources, md5)
            except RequestError:
                await self._try(FILE_APART, file, {":jn": string(order)})
                raise
            except StoreRejected:
                # A part is missing because another request has completed or cancelled the upload.
                ended = await self._find(workspace_id, upload_id)
                if ended is not None and ended[0].parts is not None:
                    raise
                return await self._end_of_race(file, order)
            values = {":jn": string(order), ":mt": string(media_type)}
            if not await self._try(FILE_JOINED, file, values):
                return await self._end_of_race(file, order)
            await self._discard(file)
        return _completed(replace(file, media_type=media_type, awaited_until_s=None, parts=None))

    async def cancel(self, workspace_id: str, upload_id: str) -> PartialUpload | None:
        with refusing_when_unavailable():
            upload = await self._find(workspace_id, upload_id)
            if upload is None:
                return None
            # From this write on, the upload cannot be found; its parts are removed afterwards.
            decided = {":now": number(int(self._clock.now_s()))}
            if not await self._try(FILE_PARTS_DELETING, upload[0], decided):
                return None
            await self._files.remove_quietly(upload[0])
        return replace(_pending(upload[0]), status="cancelled")

    async def _find(
        self, workspace_id: str, upload_id: str
    ) -> tuple[StoredFile, str | None] | None:
        """Return an upload's file, and the hash of the joined part ids (None before joining)."""
        bare = upload_id.removeprefix(UPLOAD_PREFIX)
        if bare == upload_id or not is_id(bare):
            return None
        item = await get_item(self._client, self._table, file_key(workspace_id, bare))
        if item is None or is_being_deleted(item):
            return None
        file, joined = decode_file(item), read_optional_text(item, FileItem.JOINED)
        if file.is_expired(self._clock.now_s()) or (file.parts is None and joined is None):
            return None
        return file, joined

    async def _join(
        self, file: StoredFile, sources: Sequence[tuple[str, int]], md5: str | None
    ) -> str:
        """Join the parts into the content of a file, and return the media type."""
        head, head_bytes = b"", min(HEAD_BYTES, file.size_bytes)
        for key, size_bytes in sources:
            if len(head) < head_bytes:
                length = min(size_bytes, head_bytes - len(head))
                head += await self._contents.get_range(key, 0, length)
        media_type = read_media_type(
            head,
            is_whole=file.size_bytes <= HEAD_BYTES,
            filename=file.filename,
            stated=file.media_type,
            purpose=file.purpose,
        )
        digest = hashlib.md5(usedforsecurity=False)
        await self._contents.join(sources, object_of(file), media_type, observe=digest.update)
        if md5 is not None and digest.hexdigest() != md5.lower():
            # The joined content will be overwritten by the next attempt, or removed with the
            # upload.
            raise _refused("md5", f"the parts have the MD5 {digest.hexdigest()}.")
        return media_type

    async def _end_of_race(self, file: StoredFile, order: str) -> PartialUpload | None:
        """Return the result of an upload that another request has completed or cancelled in the
        meantime.
        """
        upload = await self._find(file.workspace_id, UPLOAD_PREFIX + bare_id_of(file))
        if upload is None:
            await self._contents.delete(object_of(file))
            return None
        return _completed(upload[0]) if upload[1] == order else None

    async def _discard(self, file: StoredFile) -> None:
        """Delete the parts once the content is complete; the bucket deletes any that remain."""
        try:
            await self._contents.delete_all(
                [part_object_of(file, part) for part in file.parts or {}]
            )
        except StoreError:
            return

    async def _try(self, write: ConditionalUpdate, file: StoredFile, values: Item) -> bool:
        return await try_update(self._client, write.build(self._table, key_of_file(file), values))


def _sources(file: StoredFile, part_ids: Sequence[str]) -> list[tuple[str, int]]:
    """Return the parts' objects and sizes; raise RequestError if the parts do not make up the
    file.
    """
    parts = file.parts or {}
    bare = [part_id.removeprefix(PART_PREFIX) for part_id in part_ids]
    seen = set[str]()
    for index, part in enumerate(bare):
        if part not in parts or part in seen:
            raise _refused(
                f"part_ids[{index}]", "this is not a part of the upload, or the part is repeated."
            )
        seen.add(part)
    size_bytes = sum(parts[part] for part in bare)
    if size_bytes != file.size_bytes:
        raise _refused(
            "part_ids",
            f"{file.size_bytes:,} bytes were announced, but the parts have {size_bytes:,}.",
        )
    return [(part_object_of(file, part), parts[part]) for part in bare]


def _is_over(file: StoredFile, now_s: float) -> bool:
    return file.parts is None or _expires_s(file) <= now_s


def _expires_s(file: StoredFile) -> int:
    return file.created_s + UPLOAD_EXPIRES_S


def _pending(file: StoredFile) -> PartialUpload:
    return PartialUpload(
        id=UPLOAD_PREFIX + bare_id_of(file), file=file, status="pending", expires_s=_expires_s(file)
    )


def _completed(file: StoredFile) -> PartialUpload:
    return replace(_pending(file), status="completed")


def _refused(field: str, what: str) -> RequestError:
    return RequestError(ErrorCode.INVALID_REQUEST, f"{field}: {what}", param=field)
