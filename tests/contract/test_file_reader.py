"""Uploaded files as requests read them, by the client that other contents have.

Keeps C11, C70.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.buckets import create_bucket
from tests.contract.files import NEW, contents_in, file_store, upload_store
from tests.contract.test_announced_files import NEW_PDF, PDF, announce, send
from tests.stores import REGION, TESTER, DynamoStores, HandClock
from tollgate.aws.failures import StoreUnavailable
from tollgate.aws.objects import ObjectStore, S3Objects
from tollgate.aws.sigv4 import Credentials, Signer
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.files.stored import FileUsage
from tollgate.stores.files.bucket import BucketFiles
from tollgate.stores.files.files import DynamoFileStore
from tollgate.stores.files.reader import DynamoFileReader
from tollgate.stores.files.rows import awaited_object_of, object_of

OWNER = Credentials("test", "test")
TEXT = b"Notes.\n"


@pytest.fixture
async def objects(moto_url: str) -> AsyncIterator[ObjectStore]:
    create_bucket(moto_url, "reading")
    signer = Signer("s3", REGION, lambda: OWNER, HandClock())
    store = S3Objects("reading", REGION, signer, endpoint_url=moto_url)
    yield store
    await store.close()


@pytest.fixture
async def files(
    dynamo: DynamoStores, objects: ObjectStore, moto_url: str
) -> AsyncIterator[DynamoFileStore]:
    """The store of files, over the bucket that the reader reads."""
    contents = BucketFiles(
        "reading", REGION, clock=HandClock(), credentials=OWNER, endpoint_url=moto_url
    )
    yield file_store(dynamo, contents)
    await contents.close()


@pytest.fixture
def reader(dynamo: DynamoStores, objects: ObjectStore) -> DynamoFileReader:
    return DynamoFileReader(dynamo.client, dynamo.tables.core, objects, dynamo.clock)


async def test_c11_c70_a_file_is_found_and_read(
    files: DynamoFileStore, reader: DynamoFileReader
) -> None:
    file = await files.create(NEW, TEXT)
    found = await reader.find("acme", file.id)
    assert found is not None
    assert (found.filename, found.media_type, found.size_bytes) == (
        "notes.txt",
        "text/plain",
        len(TEXT),
    )
    assert await reader.read(found.place) == TEXT
    assert await reader.find("other", file.id) is None
    for unknown in ("", "file-", "file-x", "file-../../a", file.id.removeprefix("file-")):
        assert await reader.find("acme", unknown) is None


async def test_c70_a_file_that_is_gone_is_not_found(
    dynamo: DynamoStores, files: DynamoFileStore, reader: DynamoFileReader
) -> None:
    short = await files.create(replace(NEW, expires_after_s=3_600), TEXT)
    deleted = await files.create(NEW, TEXT)
    found = await reader.find("acme", deleted.id)
    assert found is not None
    assert await files.delete("acme", deleted.id, by=TESTER)
    assert await reader.find("acme", deleted.id) is None
    assert await reader.read(found.place) is None
    assert await reader.find("acme", short.id) is not None
    dynamo.clock.now += 3_600
    assert await reader.find("acme", short.id) is None


async def test_c70_a_content_that_was_sent_is_moved_by_the_request_that_names_it(
    files: DynamoFileStore, reader: DynamoFileReader, objects: ObjectStore
) -> None:
    id_, upload = await announce(files)
    assert await reader.find("acme", id_) is None
    await send(upload, PDF)
    found = await asyncio.gather(*(reader.find("acme", id_) for _ in range(4)))
    assert any(found)
    again = await reader.find("acme", id_)
    assert again is not None
    assert (again.media_type, again.size_bytes) == ("application/pdf", len(PDF))
    # Who still has the address changes nothing.
    await send(upload, PDF.replace(b"1.7", b"1.4"), status=412)
    assert await reader.read(again.place) == PDF
    assert await files.get("acme", id_) is not None


async def test_c70_a_content_that_is_not_as_announced_is_refused_and_left_to_its_store(
    files: DynamoFileStore, reader: DynamoFileReader
) -> None:
    id_, upload = await announce(files, NEW_PDF)
    await send(upload, b"\x89PNG" + bytes(96))
    for _ in range(2):
        with pytest.raises(RequestError) as refused:
            await reader.find("acme", id_)
        assert refused.value.code is ErrorCode.MIME_MISMATCH
    with pytest.raises(RequestError):
        await files.get("acme", id_)
    assert await reader.find("acme", id_) is None
    assert await files.usage("acme") == FileUsage()


async def test_c70_a_deleted_file_is_not_found_while_its_content_cannot_be_removed(
    dynamo: DynamoStores, reader: DynamoFileReader, moto_url: str
) -> None:
    class Kept(BucketFiles):
        async def delete(self, key: str) -> None:
            raise StoreUnavailable("no bucket", maybe_applied=True)

    contents = Kept("reading", REGION, clock=HandClock(), credentials=OWNER, endpoint_url=moto_url)
    store = file_store(dynamo, contents)
    file = await store.create(NEW, TEXT)
    assert await reader.find("acme", file.id) is not None
    assert await store.delete("acme", file.id, by=TESTER)
    assert await reader.read(object_of(file)) == TEXT
    assert await store.get("acme", file.id) is None
    assert await reader.find("acme", file.id) is None
    await contents.close()


async def test_c70_an_upload_in_parts_is_not_found_at_the_place_of_a_whole_one(
    dynamo: DynamoStores, reader: DynamoFileReader, moto_url: str, tmp_path: Path
) -> None:
    async with contents_in("s3", moto_url=moto_url, bucket="reading", folder=tmp_path) as contents:
        upload = await upload_store(dynamo, contents).create(NEW, len(TEXT))
        await contents.put(awaited_object_of(upload.file), TEXT, "text/plain")
        assert await file_store(dynamo, contents).get("acme", upload.file.id) is None
        assert await reader.find("acme", upload.file.id) is None
