"""Files whose content goes straight to the bucket: announced, checked at the first look.

Keeps C70.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest
from msgspec.structs import replace

from tests.buckets import create_bucket
from tests.contract.files import CAPS, NEW, file_store
from tests.stores import REGION, TESTER, DynamoStores, HandClock
from tollgate.aws.sigv4 import Credentials
from tollgate.core.errors import AccessError, ErrorCode, RequestError
from tollgate.core.files.stored import UPLOAD_S, FileUsage, NewFile, SignedUpload
from tollgate.stores.files.bucket import BucketFiles
from tollgate.stores.files.files import DynamoFileStore
from tollgate.stores.files.folder import FolderFiles
from tollgate.stores.files.local_uploads import LocalUploads
from tollgate.stores.files.rows import awaited_object_of, object_of

PDF = b"%PDF-1.7 " + bytes(91)
NEW_PDF = replace(NEW, filename="a.pdf", media_type="application/pdf")


@pytest.fixture
async def bucket(moto_url: str) -> AsyncIterator[BucketFiles]:
    owner = Credentials("test", "test")
    create_bucket(moto_url, "uploads")
    clock = HandClock()
    store = BucketFiles("uploads", REGION, clock=clock, credentials=owner, endpoint_url=moto_url)
    yield store
    await store.close()


async def send(upload: SignedUpload, content: bytes, *, status: int = 200) -> None:
    """Send a content as a client that holds the address does; moto checks no signature."""

    def put() -> None:
        headers = {name: upload.headers[name] for name in ("content-type", "if-none-match")}
        reply = httpx2.put(upload.url, content=content, headers=headers)
        assert reply.status_code == status, reply.text

    await asyncio.to_thread(put)


async def announce(
    store: DynamoFileStore, new: NewFile = NEW_PDF, size_bytes: int = len(PDF)
) -> tuple[str, SignedUpload]:
    announced = await store.announce(new, size_bytes)
    assert announced is not None
    file, upload = announced
    return file.id, upload


async def test_c70_an_announced_file_is_found_once_its_content_has_arrived(
    dynamo: DynamoStores, bucket: BucketFiles
) -> None:
    store = file_store(dynamo, bucket)
    id_, upload = await announce(store)
    assert upload.headers == {
        "content-length": "100",
        "content-type": "application/pdf",
        "if-none-match": "*",
    }
    for signed in (
        "X-Amz-SignedHeaders=content-length%3Bcontent-type%3Bhost%3Bif-none-match&",
        "X-Amz-Expires=3600",
    ):
        assert signed in upload.url
    assert upload.expires_s == int(dynamo.clock.now) + UPLOAD_S
    assert await store.get("acme", id_) is None
    assert (await store.page("acme", limit=5)).found == ()
    assert await store.usage("acme") == FileUsage(files=1, size_bytes=100)

    await send(upload, PDF)

    file = await store.get("acme", id_)
    assert file is not None
    assert (file.media_type, file.size_bytes) == ("application/pdf", 100)
    assert (await store.page("acme", limit=5)).found == (file,)
    assert await bucket.get_head(awaited_object_of(file), 10) is None
    found = await bucket.get_head(object_of(file), 10)
    assert found is not None
    assert (found.size_bytes, found.head) == (100, PDF[:10])
    # Who still has the address changes nothing.
    await send(upload, b"x" * 100, status=412)
    assert await store.get("acme", id_) == file
    found = await bucket.get_head(object_of(file), 10)
    assert found is not None
    assert found.head == PDF[:10]
    assert await store.delete("acme", id_, by=TESTER)
    assert await store.usage("acme") == FileUsage()


async def test_c70_a_list_finds_what_has_arrived(dynamo: DynamoStores, bucket: BucketFiles) -> None:
    store = file_store(dynamo, bucket)
    id_, upload = await announce(store)
    await announce(store)
    await send(upload, PDF)
    assert [file.id for file in (await store.page("acme", limit=5)).found] == [id_]


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"\x89PNG" + bytes(96), ErrorCode.MIME_MISMATCH),
        (b"x" * 100, ErrorCode.MIME_MISMATCH),
        (bytes(100), ErrorCode.UNSUPPORTED_FILE_TYPE),
        (PDF + b"x", ErrorCode.INVALID_REQUEST),
    ],
)
async def test_c70_a_content_that_is_not_as_announced_is_removed(
    dynamo: DynamoStores, bucket: BucketFiles, content: bytes, code: ErrorCode
) -> None:
    store = file_store(dynamo, bucket)
    id_, upload = await announce(store)
    await send(upload, content)
    with pytest.raises(RequestError) as refused:
        await store.get("acme", id_)
    assert refused.value.code is code
    assert await store.get("acme", id_) is None
    assert await store.usage("acme") == FileUsage()
    assert (await store.page("acme", limit=5)).found == ()


async def test_c70_a_content_that_never_comes_gives_its_room_back(
    dynamo: DynamoStores, bucket: BucketFiles
) -> None:
    store = file_store(dynamo, bucket)
    id_, upload = await announce(store)
    dynamo.clock.now += 2 * UPLOAD_S
    await send(upload, PDF)
    assert await store.get("acme", id_) is None
    assert (await store.page("acme", limit=5)).found == ()
    assert await store.usage("acme") == FileUsage()


async def test_c70_caps_hold_for_announced_files(dynamo: DynamoStores, bucket: BucketFiles) -> None:
    store = file_store(dynamo, bucket)
    await announce(store, size_bytes=CAPS.key.bytes_max)
    with pytest.raises(AccessError) as refused:
        await store.announce(NEW_PDF, 1)
    assert refused.value.code is ErrorCode.STORAGE_QUOTA_EXCEEDED


async def test_c70_readers_at_a_time_check_a_content_once(
    dynamo: DynamoStores, bucket: BucketFiles
) -> None:
    store = file_store(dynamo, bucket)
    id_, upload = await announce(store)
    await send(upload, PDF)
    found = await asyncio.gather(*(store.get("acme", id_) for _ in range(6)))
    assert any(found)
    assert (await store.get("acme", id_)) is not None


async def test_c70_nothing_can_be_sent_to_a_folder(dynamo: DynamoStores, tmp_path: Path) -> None:
    store = file_store(dynamo, FolderFiles(tmp_path))
    assert await store.announce(NEW, 5) is None
    assert await store.usage("acme") == FileUsage()


async def chunks(*several: bytes) -> AsyncIterator[bytes]:
    for each in several:
        yield each


async def test_c70_a_host_without_a_bucket_takes_contents_itself(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    uploads = LocalUploads(tmp_path, b"secret", dynamo.clock)
    store = file_store(dynamo, FolderFiles(tmp_path, uploads))
    id_, upload = await announce(store)
    assert upload.url.startswith("/v1/files/presigned/")
    token = upload.url.removeprefix("/v1/files/presigned/")
    assert await store.get("acme", id_) is None
    for content in ((PDF, b"x"), (PDF[:-1],), ()):
        with pytest.raises(RequestError) as refused:
            await uploads.receive(token, "application/pdf", chunks(*content))
        assert refused.value.param == "content-length"
    with pytest.raises(RequestError) as refused:
        await uploads.receive(token, "text/plain", chunks(PDF))
    assert refused.value.param == "content-type"
    await uploads.receive(token, "application/pdf", chunks(PDF[:50], PDF[50:]))
    file = await store.get("acme", id_)
    assert file is not None
    assert (file.media_type, file.size_bytes) == ("application/pdf", len(PDF))
    left = await asyncio.to_thread(lambda: [it for it in tmp_path.rglob("*") if it.is_file()])
    assert sorted(left) == [tmp_path / object_of(file), tmp_path / awaited_object_of(file)]
    assert await asyncio.to_thread((tmp_path / awaited_object_of(file)).read_bytes) == b""


@pytest.mark.parametrize("token", ["", ".", "e30.00", "é", "a" * 5_000])
async def test_c70_an_address_that_was_not_signed_here_takes_nothing(
    tmp_path: Path, token: str
) -> None:
    clock = HandClock()
    uploads = LocalUploads(tmp_path, b"secret", clock)
    other = LocalUploads(tmp_path, b"another", clock)
    signed = uploads.sign("uploads/a", size_bytes=1, media_type="text/plain").url
    mine = signed.rpartition("/")[2]
    stated = mine.partition(".")[0]
    theirs = other.sign("uploads/a", size_bytes=1, media_type="text/plain").url
    for wrong in (token, f"{stated}.", f"{stated[:-1]}.{mine[-64:]}", theirs.rpartition("/")[2]):
        with pytest.raises(AccessError):
            await uploads.receive(wrong, "text/plain", chunks(b"x"))
    clock.now += UPLOAD_S
    with pytest.raises(AccessError):
        await uploads.receive(mine, "text/plain", chunks(b"x"))
