"""The stores of uploaded files: items, contents, counts and caps.

Keeps C70.
"""

import asyncio
import urllib.error
import urllib.request
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from tests.contract.files import CAPS, NEW, OTHER_KEY, contents_in, file_store
from tests.stores import REGION, TESTER, DynamoStores, HandClock
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.aws.failures import StoreUnavailable
from tollgate.aws.sigv4 import Credentials
from tollgate.core.errors import AccessError, ErrorCode, GatewayError, LedgerError, RequestError
from tollgate.core.files.stored import FileUsage, StoredFile
from tollgate.core.records.audit import AuditFilter
from tollgate.stores.files import usage
from tollgate.stores.files.bucket import BucketFiles
from tollgate.stores.files.contents import FileContents
from tollgate.stores.files.folder import FolderFiles
from tollgate.stores.files.rows import object_of

TEXT = b"a text"


@pytest.fixture(params=["s3", "folder"])
async def contents(
    request: pytest.FixtureRequest, moto_url: str, tmp_path: Path
) -> AsyncIterator[FileContents]:
    """Contents in S3 and in a folder."""
    engine: str = request.param
    async with contents_in(engine, moto_url=moto_url, bucket="files", folder=tmp_path) as store:
        yield store


@pytest.fixture
def folder(tmp_path: Path) -> FolderFiles:
    return FolderFiles(tmp_path)


async def read(contents: FileContents, file: StoredFile) -> bytes | None:
    """The content of a file as a client gets it."""
    found = await contents.download(
        object_of(file), filename=file.filename, media_type=file.media_type
    )
    if found is None:
        return None
    if found.path is not None:
        return found.path.read_bytes()

    def fetch() -> bytes | None:
        try:
            with urllib.request.urlopen(str(found.url), timeout=5) as reply:
                assert reply.headers["content-type"] == file.media_type
                assert reply.headers["content-disposition"].startswith("attachment")
                return bytes(reply.read())
        except urllib.error.HTTPError as missing:
            # moto answers 403 for a signed address of an object that is missing.
            return None if missing.code in (403, 404) else b"an error"

    return await asyncio.to_thread(fetch)


async def test_c70_a_file_is_stored_read_listed_and_deleted(
    dynamo: DynamoStores, contents: FileContents
) -> None:
    store = file_store(dynamo, contents)
    file = await store.create(NEW, TEXT)
    assert (file.filename, file.size_bytes, file.expires_s) == ("notes.txt", 6, None)
    assert await store.get("acme", file.id) == file
    assert (await store.page("acme", limit=5)).found == (file,)
    assert await read(contents, file) == TEXT
    assert await store.usage("acme") == FileUsage(files=1, size_bytes=6)

    assert await store.delete("acme", file.id, by=TESTER)

    assert await store.get("acme", file.id) is None
    assert (await store.page("acme", limit=5)).found == ()
    assert await read(contents, file) is None
    assert await store.usage("acme") == FileUsage()
    assert not await store.delete("acme", file.id, by=TESTER)


async def test_c70_c90_a_deletion_is_in_the_audit_log(
    dynamo: DynamoStores, folder: FolderFiles
) -> None:
    store = file_store(dynamo, folder)
    file = await store.create(NEW, TEXT)
    await store.delete("acme", file.id, by=TESTER)
    wanted = AuditFilter(since_s=0, until_s=int(dynamo.clock.now) + 1)
    [entry] = (await dynamo.audit_log.page("acme", wanted, limit=10)).found
    assert (entry.action, entry.target, entry.actor) == ("file.delete", file.id, TESTER)
    assert entry.before == {"filename": "notes.txt", "purpose": "user_data", "size_bytes": "6"}


@pytest.mark.parametrize("id_", ["", "file-", "x", "file-x", "gen-Na1b2c3d4e5f6g7", "file-é" * 9])
async def test_c70_an_id_of_another_form_is_not_found(
    dynamo: DynamoStores, folder: FolderFiles, id_: str
) -> None:
    assert await file_store(dynamo, folder).get("acme", id_) is None


async def test_c70_files_of_another_workspace_are_not_found(
    dynamo: DynamoStores, folder: FolderFiles
) -> None:
    store = file_store(dynamo, folder)
    file = await store.create(NEW, TEXT)
    assert await store.get("other", file.id) is None
    assert not await store.delete("other", file.id, by=TESTER)
    assert (await store.page("other", limit=5)).found == ()
    assert await store.usage("other") == FileUsage()
    assert await store.get("acme", file.id) == file


async def test_c70_a_list_is_paged_filtered_and_ordered(
    dynamo: DynamoStores, folder: FolderFiles
) -> None:
    store = file_store(dynamo, folder)
    files = []
    for purpose in ("user_data", "vision", "user_data", "vision", "user_data"):
        dynamo.clock.now += 1
        files.append(await store.create(replace(NEW, purpose=purpose), TEXT))
    first = await store.page("acme", limit=2)
    assert first.found == (files[4], files[3])
    assert first.next == files[3].id
    second = await store.page("acme", limit=3, after=first.next)
    assert (second.found, second.next) == ((files[2], files[1], files[0]), None)
    oldest = await store.page("acme", limit=1, purpose="vision", oldest_first=True)
    assert (oldest.found, oldest.next) == ((files[1],), files[1].id)
    last = await store.page("acme", limit=1, purpose="vision", oldest_first=True, after=oldest.next)
    assert (last.found, last.next) == ((files[3],), None)
    with pytest.raises(RequestError) as refused:
        await store.page("acme", limit=1, after="file-x")
    assert refused.value.param == "after"


async def test_c70_files_of_one_second_are_listed_newest_first(
    dynamo: DynamoStores, folder: FolderFiles
) -> None:
    store = file_store(dynamo, folder)
    files = [await store.create(NEW, TEXT) for _ in range(6)]
    assert (await store.page("acme", limit=6)).found == tuple(reversed(files))


async def test_c70_an_expired_file_is_not_found_and_its_room_is_given_back(
    dynamo: DynamoStores, folder: FolderFiles
) -> None:
    store = file_store(dynamo, folder)
    file = await store.create(replace(NEW, expires_after_s=3600), TEXT)
    assert "/expiring/" in object_of(file)
    dynamo.clock.now += 3599
    assert await store.get("acme", file.id) is not None
    dynamo.clock.now += 1
    assert await store.get("acme", file.id) is None
    assert await store.usage("acme") == FileUsage(files=1, size_bytes=6)
    assert (await store.page("acme", limit=5)).found == ()
    assert await store.usage("acme") == FileUsage()
    assert await read(folder, file) is None


async def test_c70_a_workspace_at_its_cap_gets_back_the_room_of_expired_files(
    dynamo: DynamoStores, folder: FolderFiles
) -> None:
    store = file_store(dynamo, folder)
    for _ in range(CAPS.key.files_max):
        await store.create(replace(NEW, expires_after_s=3600), TEXT)
    await refused(store.create(NEW, TEXT))
    dynamo.clock.now += 3600
    assert await store.create(NEW, TEXT)
    assert await store.usage("acme") == FileUsage(files=1, size_bytes=6)


async def refused(creating: Any) -> GatewayError:
    with pytest.raises(AccessError) as raised:
        await creating
    return raised.value


async def test_c70_caps_hold_for_a_key_and_its_workspace(
    dynamo: DynamoStores, folder: FolderFiles
) -> None:
    store = file_store(dynamo, folder)
    await store.create(NEW, b"x" * 2_500)
    error = await refused(store.create(NEW, b"x" * 501))
    assert error.code is ErrorCode.STORAGE_QUOTA_EXCEEDED
    assert "The key may store 3,000 bytes" in error.message
    await store.create(OTHER_KEY, b"x" * 1_400)
    error = await refused(store.create(OTHER_KEY, b"x" * 101))
    assert "The workspace may store 4,000 bytes" in error.message
    # What the key was counted for is given back where the workspace refuses.
    dynamo.clock.now += 1
    assert await store.create(OTHER_KEY, b"x" * 100)
    assert await store.usage("acme") == FileUsage(files=3, size_bytes=4_000)


@pytest.mark.parametrize("size", [100, 60])
async def test_c70_caps_hold_under_64_parallel_uploads(
    honest: DynamoStores, folder: FolderFiles, size: int
) -> None:
    stored, refusals = await race(honest, folder, size)
    wanted = min(CAPS.key.files_max, CAPS.key.bytes_max // size)
    assert len(stored) == wanted
    assert {it.code for it in refusals} <= {
        ErrorCode.FILE_COUNT_QUOTA_EXCEEDED,
        ErrorCode.STORAGE_QUOTA_EXCEEDED,
    }
    store = file_store(honest, folder)
    assert await store.usage("acme") == FileUsage(files=wanted, size_bytes=wanted * size)
    assert len((await store.page("acme", limit=100)).found) == wanted


async def test_the_race_finds_a_count_that_is_written_without_its_condition(
    honest: DynamoStores, folder: FolderFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The bug is seeded: the caps are read, and then the count is written."""
    lax = replace(usage.FILE_RESERVE, condition="attribute_not_exists(h.#h) AND size(h) < :max")

    class ReadFirst(usage.FileUsages):
        async def reserve(self, place: Any, upload: str, size_bytes: int, cap: Any) -> Any:
            item = await usage.get_item(self._client, self._table, place)
            if item is not None and int(item["n"]["N"]) >= cap.files_max:
                return item
            values = {":one": {"N": "1"}, ":x": {"N": str(size_bytes)}, ":max": {"N": "256"}}
            if item is None:
                await self._create(place)
            write = lax.build(self._table, place, values, {"#h": upload})
            await self._client.call("UpdateItem", write)
            return None

    monkeypatch.setattr("tollgate.stores.files.files.FileUsages", ReadFirst)
    stored, _ = await race(honest, folder, 10)
    assert len(stored) > CAPS.key.files_max


async def race(
    honest: DynamoStores, folder: FolderFiles, size: int
) -> tuple[list[StoredFile], list[GatewayError]]:
    """Upload 64 files at a time through several processes' stores."""
    several = [file_store(honest, folder) for _ in range(4)]
    outcomes = await asyncio.gather(
        *(several[turn % 4].create(NEW, b"x" * size) for turn in range(64)), return_exceptions=True
    )
    refusals = [it for it in outcomes if isinstance(it, GatewayError)]
    stored = [it for it in outcomes if isinstance(it, StoredFile)]
    assert len(stored) + len(refusals) == 64, outcomes
    return stored, refusals


async def test_c70_parallel_deletions_give_back_each_file_once(
    honest: DynamoStores, folder: FolderFiles
) -> None:
    store = file_store(honest, folder)
    files = [await store.create(NEW, TEXT) for _ in range(6)]
    done = await asyncio.gather(
        *(store.delete("acme", file.id, by=TESTER) for file in files for _ in range(3)),
        return_exceptions=True,
    )
    assert [
        it for it in done if isinstance(it, Exception) and not isinstance(it, LedgerError)
    ] == []
    # Removals that lost their turn are finished by the next list.
    for _ in range(3):
        assert (await store.page("acme", limit=10)).found == ()
    assert await store.usage("acme") == FileUsage()


class Failing:
    """A client whose calls of one operation fail, before they are applied or after."""

    def __init__(self, client: AwsCaller, operation: str, *, applied: bool) -> None:
        self._client = client
        self._operation = operation
        self._applied = applied

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        if operation != self._operation or "#h" in str(payload):
            return await self._client.call(operation, payload, attempts_max=attempts_max)
        if self._applied:
            await self._client.call(operation, payload)
        raise StoreUnavailable("lost", maybe_applied=True)


@pytest.mark.parametrize("applied", [False, True])
async def test_c70_an_upload_of_a_killed_process_counts_until_it_is_found(
    dynamo: DynamoStores, folder: FolderFiles, applied: bool
) -> None:
    store = file_store(dynamo, folder)
    for _ in range(CAPS.key.files_max - 1):
        await store.create(NEW, TEXT)
    failing = Failing(dynamo.client, "PutItem", applied=applied)
    with pytest.raises(LedgerError):
        await file_store(dynamo, folder, client=failing).create(NEW, TEXT)
    await refused(store.create(NEW, TEXT))
    dynamo.clock.now += 1_801
    if applied:
        await refused(store.create(NEW, TEXT))
    else:
        await store.create(NEW, TEXT)
    assert (await store.usage("acme")).files == CAPS.key.files_max
    assert len((await store.page("acme", limit=100)).found) == CAPS.key.files_max


async def test_c70_contents_that_cannot_be_stored_leave_nothing_behind(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    class Broken(FolderFiles):
        async def put(self, key: str, content: bytes, media_type: str) -> None:
            raise StoreUnavailable("no bucket", maybe_applied=True)

    store = file_store(dynamo, Broken(tmp_path))
    with pytest.raises(LedgerError):
        await store.create(NEW, TEXT)
    assert await store.usage("acme") == FileUsage()
    assert (await store.page("acme", limit=5)).found == ()


async def test_c70_a_bucket_that_refuses_or_cannot_be_reached_is_unavailable(
    dynamo: DynamoStores, moto_url: str
) -> None:
    owner = Credentials("test", "test")
    for bucket, url in (("missing", moto_url), ("files", "http://127.0.0.1:9")):
        contents = BucketFiles(
            bucket, REGION, clock=HandClock(), credentials=owner, endpoint_url=url
        )
        with pytest.raises(LedgerError):
            await file_store(dynamo, contents).create(NEW, TEXT)
        await contents.close()
