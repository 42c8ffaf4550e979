"""Files that come in parts: kept, joined in their order, cancelled and swept.

Keeps C70.
"""

import asyncio
import hashlib
import os
from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.contract.files import CAPS, NEW, contents_in, file_store, upload_store
from tests.contract.test_files import read
from tests.stores import DynamoStores
from tollgate.aws.failures import StoreUnavailable
from tollgate.core.errors import AccessError, ErrorCode, GatewayError, RequestError
from tollgate.core.files.stored import FileUsage, PartialUpload
from tollgate.stores.files import contents as pieces
from tollgate.stores.files.contents import FileContents, SourceRange, cut_into_pieces
from tollgate.stores.files.folder import FolderFiles
from tollgate.stores.files.rows import awaited_object_of
from tollgate.stores.files.uploads import UPLOAD_EXPIRES_S, UPLOAD_PARTS_MAX, DynamoUploadStore

WORDS = (b"One, ", b"two, ", b"three.")
WHOLE = b"".join(WORDS)


@pytest.fixture(params=["s3", "folder"])
async def contents(
    request: pytest.FixtureRequest, moto_url: str, tmp_path: Path
) -> AsyncIterator[FileContents]:
    """Contents in S3 and in a folder."""
    engine: str = request.param
    async with contents_in(engine, moto_url=moto_url, bucket="parts", folder=tmp_path) as store:
        yield store


async def send(store: DynamoUploadStore, upload: PartialUpload, *parts: bytes) -> list[str]:
    sent = [await store.add_part("acme", upload.id, part) for part in parts]
    assert None not in sent
    return [each for each in sent if each]


async def test_c70_parts_are_joined_in_the_order_that_is_wanted(
    dynamo: DynamoStores, contents: FileContents
) -> None:
    store, files = upload_store(dynamo, contents), file_store(dynamo, contents)
    upload = await store.create(NEW, len(WHOLE))
    assert (upload.status, upload.expires_s) == ("pending", int(dynamo.clock.now) + 3_600)
    assert await files.get("acme", upload.file.id) is None
    assert (await files.page("acme", limit=5)).found == ()
    assert await files.usage("acme") == FileUsage(files=1, size_bytes=len(WHOLE))
    last, first, again, middle = await send(store, upload, WORDS[2], WORDS[0], WORDS[0], WORDS[1])
    assert len({last, first, again, middle}) == 4

    md5 = hashlib.md5(WHOLE, usedforsecurity=False).hexdigest().upper()
    done = await store.complete("acme", upload.id, [first, middle, last], md5)

    assert done is not None
    assert done.status == "completed"
    file = await files.get("acme", done.file.id)
    assert file == done.file
    assert (file.media_type, file.size_bytes) == ("text/plain", len(WHOLE))
    assert await read(contents, file) == WHOLE
    assert (await files.page("acme", limit=5)).found == (file,)
    assert await files.usage("acme") == FileUsage(files=1, size_bytes=len(WHOLE))
    # A client whose reply was lost asks again; the parts are gone by then.
    assert await store.complete("acme", upload.id, [first, middle, last], md5) == done
    assert await store.complete("acme", upload.id, [again, middle, last], None) is None
    assert await store.add_part("acme", upload.id, b"x") is None
    assert await store.cancel("acme", upload.id) is None
    bare = first.removeprefix("part_")
    assert await contents.get_head(f"{awaited_object_of(file)}/{bare}", 5) is None


async def test_c70_parts_of_any_size_make_pieces_of_one(
    dynamo: DynamoStores, contents: FileContents, monkeypatch: pytest.MonkeyPatch
) -> None:
    caps = replace(
        CAPS,
        workspace=replace(CAPS.workspace, bytes_max=10**9),
        key=replace(CAPS.key, bytes_max=10**9),
    )
    store = upload_store(dynamo, contents, caps)
    sizes = [6_000_000, 1, 9_000_001, 100, 5_242_880, 70_000]
    parts = [os.urandom(size) for size in sizes]
    content = b"%PDF-1.7 " + b"".join(parts)[9:]
    parts[0] = content[: sizes[0]]
    upload = await store.create(
        replace(NEW, filename="a.pdf", media_type="application/pdf"), len(content)
    )
    ids = await send(store, upload, *parts)
    done = await store.complete("acme", upload.id, ids, hashlib.md5(content).hexdigest())
    assert done is not None
    assert done.file.media_type == "application/pdf"
    assert await read(contents, done.file) == content


def test_c70_pieces_have_all_bytes_once_and_one_size() -> None:
    size = pieces.PIECE_BYTES
    sources = [("a", size + 5), ("b", 0), ("c", 7), ("d", 2 * size)]
    cut = list(cut_into_pieces(sources))
    assert [sum(each.length for each in piece) for piece in cut] == [size, size, size, 12]
    assert cut[1] == [
        SourceRange("a", size, 5),
        SourceRange("c", 0, 7),
        SourceRange("d", 0, size - 12),
    ]
    for key, whole in sources:
        ranges = [each for piece in cut for each in piece if each.key == key]
        assert sum(each.length for each in ranges) == whole
    assert list(cut_into_pieces([])) == []


@pytest.mark.parametrize(
    ("wrong", "param"),
    [
        ("unknown", "part_ids[1]"),
        ("twice", "part_ids[1]"),
        ("fewer", "part_ids"),
        ("md5", "md5"),
    ],
)
async def test_c70_what_is_not_as_announced_is_refused_and_stays_pending(
    dynamo: DynamoStores, contents: FileContents, wrong: str, param: str
) -> None:
    store = upload_store(dynamo, contents)
    upload = await store.create(NEW, len(WHOLE))
    ids = await send(store, upload, *WORDS)
    asked = {
        "unknown": [ids[0], "part_x", ids[2]],
        "twice": [ids[0], ids[0], ids[2]],
        "fewer": ids[:2],
        "md5": ids,
    }[wrong]
    with pytest.raises(RequestError) as refused:
        await store.complete("acme", upload.id, asked, "0" * 32 if wrong == "md5" else None)
    assert refused.value.param == param
    done = await store.complete("acme", upload.id, [ids[0], ids[1], ids[2]], None)
    assert done is not None
    assert await read(contents, done.file) == WHOLE


async def test_c70_a_content_of_another_type_is_refused_and_can_be_cancelled(
    dynamo: DynamoStores, contents: FileContents
) -> None:
    store, files = upload_store(dynamo, contents), file_store(dynamo, contents)
    upload = await store.create(replace(NEW, media_type="application/pdf"), 4)
    ids = await send(store, upload, b"\x89P", b"NG")
    with pytest.raises(RequestError) as refused:
        await store.complete("acme", upload.id, ids, None)
    assert refused.value.code is ErrorCode.MIME_MISMATCH
    cancelled = await store.cancel("acme", upload.id)
    assert cancelled is not None
    assert cancelled.status == "cancelled"
    assert await files.usage("acme") == FileUsage()
    part = ids[0].removeprefix("part_")
    assert await contents.get_head(f"{awaited_object_of(upload.file)}/{part}", 5) is None
    for gone in (
        store.complete("acme", upload.id, ids, None),
        store.cancel("acme", upload.id),
        store.add_part("acme", upload.id, b"x"),
    ):
        assert await gone is None


async def test_c70_uploads_of_another_workspace_are_not_found(
    dynamo: DynamoStores, contents: FileContents
) -> None:
    store = upload_store(dynamo, contents)
    upload = await store.create(NEW, len(WHOLE))
    file = await file_store(dynamo, contents).create(NEW, b"text")
    announced = f"upload_{file.id.removeprefix('file-')}"
    for workspace, id_ in (
        ("other", upload.id),
        ("acme", upload.file.id),
        ("acme", "upload_x"),
        ("acme", announced),
    ):
        assert await store.add_part(workspace, id_, b"x") is None
        assert await store.complete(workspace, id_, ["part_x"], None) is None
        assert await store.cancel(workspace, id_) is None


async def test_c70_an_upload_ends_after_an_hour_and_is_swept(
    dynamo: DynamoStores, contents: FileContents
) -> None:
    store, files = upload_store(dynamo, contents), file_store(dynamo, contents)
    upload = await store.create(NEW, len(WHOLE))
    ids = await send(store, upload, *WORDS)
    dynamo.clock.now += UPLOAD_EXPIRES_S
    assert await store.add_part("acme", upload.id, b"x") is None
    assert await store.complete("acme", upload.id, ids, None) is None
    dynamo.clock.now += UPLOAD_EXPIRES_S
    assert (await files.page("acme", limit=5)).found == ()
    assert await files.usage("acme") == FileUsage()
    part = ids[0].removeprefix("part_")
    assert await contents.get_head(f"{awaited_object_of(upload.file)}/{part}", 5) is None


async def test_c70_parts_have_a_number_and_a_size(
    dynamo: DynamoStores, contents: FileContents, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = upload_store(dynamo, contents)
    upload = await store.create(NEW, 10)
    await send(store, upload, b"x" * 10, b"x" * 10)
    with pytest.raises(RequestError) as refused:
        await store.add_part("acme", upload.id, b"x")
    assert refused.value.param == "data"
    assert UPLOAD_PARTS_MAX == 1_000
    monkeypatch.setattr("tollgate.stores.files.uploads.UPLOAD_PARTS_MAX", 2)
    other = await store.create(NEW, 10)
    await send(store, other, b"x", b"x")
    with pytest.raises(RequestError):
        await store.add_part("acme", other.id, b"x")


@pytest.mark.parametrize("size", [100, 60])
async def test_c70_caps_hold_under_64_parallel_uploads_in_parts(
    honest: DynamoStores, tmp_path: Path, size: int
) -> None:
    contents = FolderFiles(tmp_path)
    several = [upload_store(honest, contents) for _ in range(4)]

    async def upload(turn: int) -> PartialUpload:
        store = several[turn % 4]
        begun = await store.create(NEW, size)
        ids = [await store.add_part("acme", begun.id, b"x" * (size // 2)) for _ in range(2)]
        done = await store.complete("acme", begun.id, [each or "" for each in ids], None)
        assert done is not None
        return done

    outcomes = await asyncio.gather(*map(upload, range(64)), return_exceptions=True)
    stored = [it for it in outcomes if isinstance(it, PartialUpload)]
    refusals = [it for it in outcomes if isinstance(it, GatewayError)]
    assert len(stored) + len(refusals) == 64, outcomes
    wanted = min(CAPS.key.files_max, CAPS.key.bytes_max // size)
    assert len(stored) == wanted
    assert all(isinstance(it, AccessError) for it in refusals)
    files = file_store(honest, contents)
    assert await files.usage("acme") == FileUsage(files=wanted, size_bytes=wanted * size)
    assert len((await files.page("acme", limit=100)).found) == wanted


async def test_c70_completions_side_by_side_make_one_content(
    dynamo: DynamoStores, contents: FileContents
) -> None:
    store = upload_store(dynamo, contents)
    upload = await store.create(NEW, len(WHOLE))
    ids = await send(store, upload, *WORDS)
    orders = [ids, ids, ids[::-1], [ids[1], ids[0], ids[2]]]
    outcomes = await asyncio.gather(
        *(store.complete("acme", upload.id, order, None) for order in orders),
        return_exceptions=True,
    )
    won = [it for it in outcomes if isinstance(it, PartialUpload)]
    assert won
    assert {it.file.id for it in won} == {upload.file.id}
    assert all(it is None or isinstance(it, PartialUpload | GatewayError) for it in outcomes)
    [order] = {
        tuple(order)
        for order, it in zip(orders, outcomes, strict=True)
        if isinstance(it, PartialUpload)
    }
    by_id = dict(zip(ids, WORDS, strict=True))
    assert await read(contents, won[0].file) == b"".join(by_id[part] for part in order)


def files_below(folder: Path) -> list[Path]:
    return [it for it in folder.rglob("*") if it.is_file()]


async def test_c70_a_cancellation_stands_though_its_parts_are_removed_later(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    class Stuck(FolderFiles):
        async def delete_all(self, keys: Sequence[str]) -> None:
            raise StoreUnavailable("no bucket", maybe_applied=True)

    store = upload_store(dynamo, Stuck(tmp_path))
    upload = await store.create(NEW, len(WHOLE))
    ids = await send(store, upload, *WORDS)
    assert await store.cancel("acme", upload.id)
    assert await store.complete("acme", upload.id, ids, None) is None
    assert await store.add_part("acme", upload.id, b"x") is None
    files = file_store(dynamo, FolderFiles(tmp_path))
    assert (await files.page("acme", limit=5)).found == ()
    assert await files.usage("acme") == FileUsage()
    assert await asyncio.to_thread(files_below, tmp_path) == []
