"""A signed address is for one upload, and what arrives late is stored by nobody.

Keeps C70.
"""

import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import pytest

from tests.buckets import create_bucket
from tests.contract.files import CAPS, NEW, file_store
from tests.contract.test_announced_files import PDF, announce, chunks, send
from tests.stores import REGION, TESTER, DynamoStores, HandClock
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.aws.failures import StoreError
from tollgate.aws.objects import FolderObjects, ObjectHead, ObjectStore, S3Objects
from tollgate.aws.sigv4 import Credentials, Signer
from tollgate.core.errors import AccessError, RequestError
from tollgate.core.files.stored import UPLOAD_S, FileUsage, SignedUpload
from tollgate.stores.files.bucket import BucketFiles
from tollgate.stores.files.contents import FileContents
from tollgate.stores.files.files import DynamoFileStore
from tollgate.stores.files.folder import FolderFiles
from tollgate.stores.files.late_uploads import AWAITED_FOR_S, LateUploads
from tollgate.stores.files.local_uploads import LocalUploads
from tollgate.stores.files.rows import awaited_object_of, object_of

OWNER = Credentials("test", "test")


class Host:
    """A host that stores files in a bucket or in a folder, as its clients see it."""

    def __init__(
        self, contents: FileContents, objects: ObjectStore, local: LocalUploads | None = None
    ) -> None:
        self.contents = contents
        self.objects = objects
        self.local = local

    async def put(self, upload: SignedUpload, content: bytes, *, accepted: bool) -> None:
        """Send a content to a signed address, as often as a client likes."""
        if self.local is None:
            await send(upload, content, status=200 if accepted else 412)
            return
        token = upload.url.rpartition("/")[2]
        type_ = upload.headers["content-type"]
        if accepted:
            await self.local.receive(token, type_, chunks(content))
            return
        with pytest.raises(AccessError, match="has been used"):
            await self.local.receive(token, type_, chunks(content))

    async def stored_bytes(self) -> int:
        """Return the bytes of all objects, wherever they lie."""
        sizes = [0]
        for prefix in ("uploads/", "files/"):
            async for group in self.objects.list(prefix):
                heads = [await self.objects.get_head(found.key, 1) for found in group]
                sizes += [head.size_bytes for head in heads if head is not None]
        return sum(sizes)


@pytest.fixture(params=["bucket", "folder"])
async def host(
    request: pytest.FixtureRequest, moto_url: str, tmp_path: Path, dynamo: DynamoStores
) -> AsyncIterator[Host]:
    if request.param == "folder":
        local = LocalUploads(tmp_path, b"secret", dynamo.clock)
        yield Host(FolderFiles(tmp_path, local), FolderObjects(tmp_path), local)
        return
    create_bucket(moto_url, "late")
    store = BucketFiles(
        "late", REGION, clock=dynamo.clock, credentials=OWNER, endpoint_url=moto_url
    )
    signer = Signer("s3", REGION, lambda: OWNER, dynamo.clock)
    objects = S3Objects("late", REGION, signer, endpoint_url=moto_url)
    yield Host(store, objects)
    await objects.close()
    await store.close()


async def test_c70_a_put_after_the_deletion_of_its_file_leaves_nothing(
    dynamo: DynamoStores, host: Host
) -> None:
    store = file_store(dynamo, host.contents)
    before = await host.stored_bytes()
    id_, upload = await announce(store)
    await host.put(upload, PDF, accepted=True)
    assert await store.get("acme", id_) is not None
    assert await store.delete("acme", id_, by=TESTER)
    assert await store.usage("acme") == FileUsage()
    for _ in range(3):
        await host.put(upload, PDF, accepted=False)
    assert await host.stored_bytes() == before


async def test_c70_a_refused_or_forgotten_address_takes_nothing_afterwards(
    dynamo: DynamoStores, host: Host
) -> None:
    store = file_store(dynamo, host.contents)
    before = await host.stored_bytes()
    id_, upload = await announce(store)
    await host.put(upload, b"x" * 100, accepted=True)
    with pytest.raises(RequestError):
        await store.get("acme", id_)
    await host.put(upload, PDF, accepted=False)
    _, forgotten = await announce(store)
    dynamo.clock.now += UPLOAD_S - 1
    assert await host.stored_bytes() == before
    await host.put(forgotten, PDF, accepted=True)
    dynamo.clock.now += UPLOAD_S + 1
    await LateUploads(host.objects, dynamo.clock).remove()
    assert await host.stored_bytes() == before
    assert (await store.page("acme", limit=5)).found == ()
    assert await store.usage("acme") == FileUsage()


async def test_c70_the_sweeper_removes_what_no_file_awaits_and_nothing_else(
    dynamo: DynamoStores, host: Host
) -> None:
    store, late = file_store(dynamo, host.contents), LateUploads(host.objects, dynamo.clock)
    id_, upload = await announce(store)
    await host.put(upload, PDF, accepted=True)
    file = await store.get("acme", id_)
    assert file is not None
    # What a bucket takes although its file is gone: an upload that ended after the sweep.
    await host.contents.put(awaited_object_of(file), PDF, "application/pdf")
    part = f"{awaited_object_of(file)}/part"
    if isinstance(host.contents, BucketFiles):
        await host.contents.put(part, PDF, "application/pdf")
    dynamo.clock.now += AWAITED_FOR_S - 1
    assert await late.remove() == 0
    young, awaited = await announce(store)
    await host.put(awaited, PDF, accepted=True)
    dynamo.clock.now += 1
    assert await late.remove() >= 1
    assert await host.contents.get_head(awaited_object_of(file), 9) is None
    assert await host.contents.get_head(part, 9) is None
    assert await store.get("acme", young) is not None
    assert await host.contents.get_head(object_of(file), 9) is not None


async def test_objects_are_listed_in_groups(
    objects: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = [f"listed/{folder}/{nth}" for folder in "ab" for nth in range(3)]
    for key in (*keys, "listed2/c", "other"):
        await objects.put(key, b"content")
    assert [group async for group in objects.list("none/")] == []
    monkeypatch.setattr("tollgate.aws.objects._GROUP_MAX", 2)
    groups = [group async for group in objects.list("listed/")]
    assert sorted(found.key for group in groups for found in group) == keys
    assert [len(group) for group in groups] == [2, 2, 2]
    assert all(abs(found.written_s - time.time()) < 60 for group in groups for found in group)


async def test_c70_the_temporary_file_of_a_killed_process_is_removed(tmp_path: Path) -> None:
    clock = HandClock()
    left = tmp_path / "uploads" / "tmp1234"
    left.parent.mkdir()
    for age_s, stays in ((AWAITED_FOR_S - 1, True), (AWAITED_FOR_S, False)):
        left.write_bytes(PDF)
        os.utime(left, (clock.now - age_s, clock.now - age_s))
        assert await LateUploads(FolderObjects(tmp_path), clock).remove() == (not stays)
        assert left.exists() is stays
    assert await LateUploads(FolderObjects(tmp_path / "none"), clock).remove() == 0


async def test_c70_a_second_upload_to_an_address_is_not_read(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    local = LocalUploads(tmp_path, b"secret", dynamo.clock)
    store = file_store(dynamo, FolderFiles(tmp_path, local))
    id_, upload = await announce(store)
    token = upload.url.rpartition("/")[2]
    begun, go_on = asyncio.Event(), asyncio.Event()

    async def slowly() -> AsyncIterator[bytes]:
        yield PDF[:1]
        begun.set()
        await go_on.wait()
        yield PDF[1:]

    async def unread() -> AsyncIterator[bytes]:
        assert not begun.is_set(), "the second upload is read"
        yield b""

    first = asyncio.create_task(local.receive(token, "application/pdf", slowly()))
    await begun.wait()
    for _ in range(2):
        with pytest.raises(AccessError, match="has been used"):
            await local.receive(token, "application/pdf", unread())
        go_on.set()
        await first
    assert await store.get("acme", id_) is not None


class Exchanging:
    """Contents in which another content takes the place of the one that was just checked."""

    def __init__(self, contents: FileContents, exchange: Callable[[str], object]) -> None:
        self._contents = contents
        self._exchange = exchange

    def __getattr__(self, name: str) -> object:
        return getattr(self._contents, name)

    async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
        found = await self._contents.get_head(key, bytes_max)
        await asyncio.to_thread(self._exchange, key)
        return found


async def test_c70_a_content_exchanged_between_check_and_copy_in_a_folder_is_refused(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    local = LocalUploads(tmp_path, b"secret", dynamo.clock)
    contents = FolderFiles(tmp_path, local)

    def exchange(key: str) -> None:
        other = tmp_path / "other"
        other.write_bytes(b"<html>" + bytes(94))
        other.replace(tmp_path / key)

    store = file_store(dynamo, Exchanging(contents, exchange))  # type: ignore[arg-type]
    id_, upload = await announce(store)
    await local.receive(upload.url.rpartition("/")[2], "application/pdf", chunks(PDF))
    with pytest.raises(RequestError, match="replaced while it was checked"):
        await store.get("acme", id_)
    assert await store.get("acme", id_) is None
    assert await store.usage("acme") == FileUsage()
    assert not list((tmp_path / "files").rglob("*-*"))


@pytest.mark.parametrize("client", ["aioboto3", "signed"])
async def test_c70_a_content_exchanged_between_check_and_copy_in_a_bucket_is_refused(
    moto_url: str, client: str
) -> None:
    create_bucket(moto_url, client)
    signer = Signer("s3", REGION, lambda: OWNER, HandClock())
    contents: S3Objects | BucketFiles = (
        S3Objects(client, REGION, signer, endpoint_url=moto_url)
        if client == "signed"
        else BucketFiles(
            client, REGION, clock=HandClock(), credentials=OWNER, endpoint_url=moto_url
        )
    )
    await contents.put("uploads/a", PDF, *_type(contents))
    found = await contents.get_head("uploads/a", 9)
    assert found is not None
    await contents.put("uploads/a", b"<html>", *_type(contents))
    assert not await contents.copy("uploads/a", "files/a", "text/html", etag=found.etag)
    assert await contents.get_head("files/a", 9) is None
    found = await contents.get_head("uploads/a", 9)
    assert found is not None
    assert await contents.copy("uploads/a", "files/a", "text/html", etag=found.etag)
    await contents.seal("uploads/a")
    assert await contents.get_head("uploads/a", 9) is None
    assert not await contents.copy("uploads/a", "files/a", "text/html", etag=found.etag)
    assert not await contents.copy("uploads/b", "files/a", "text/html", etag=found.etag)
    assert (await contents.get_head("files/a", 9)) is not None
    await contents.close()


def _type(contents: S3Objects | BucketFiles) -> tuple[str, ...]:
    return ("text/plain",) if isinstance(contents, BucketFiles) else ()


async def test_c70_a_copy_that_ends_after_the_deletion_keeps_no_bytes(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    local = LocalUploads(tmp_path, b"secret", dynamo.clock)
    contents = FolderFiles(tmp_path, local)
    quick = file_store(dynamo, contents)

    class Late(FolderObjects):
        async def get_head(self, key: str, bytes_max: int) -> ObjectHead | None:
            """Return the head; meanwhile another reader takes the file, and deletes it."""
            found = await super().get_head(key, bytes_max)
            content = await self.get(key)
            assert await quick.get("acme", id_) is not None
            assert await quick.delete("acme", id_, by=TESTER)
            await contents.put(key, content or b"")
            return await super().get_head(key, bytes_max) or found

    slow = DynamoFileStore(
        dynamo.client,
        dynamo.tables,
        Late(tmp_path),  # type: ignore[arg-type]
        CAPS,
        ids=quick._ids,
        clock=dynamo.clock,
    )
    id_, upload = await announce(quick)
    await local.receive(upload.url.rpartition("/")[2], "application/pdf", chunks(PDF))
    assert await slow.get("acme", id_) is None
    files = [it for it in (tmp_path / "files").rglob("*") if it.is_file()]
    assert [it.stat().st_size for it in files] == [0]


async def test_c70_the_content_of_an_upload_that_was_killed_goes_with_its_count(
    dynamo: DynamoStores, tmp_path: Path
) -> None:
    """The process dies between the content and the item, for a file that fills the cap."""

    class Dying:
        def __init__(self, client: AwsCaller) -> None:
            self.client = client

        async def call(
            self, operation: str, payload: dict[str, object], *, attempts_max: int = ATTEMPTS_MAX
        ) -> AwsReply:
            if operation == "PutItem" and "fn" in str(payload["Item"]):
                raise asyncio.CancelledError
            return await self.client.call(operation, payload, attempts_max=attempts_max)

    contents = FolderFiles(tmp_path)
    dying = file_store(dynamo, contents, client=Dying(dynamo.client))  # type: ignore[arg-type]
    with pytest.raises((asyncio.CancelledError, StoreError)):
        await dying.create(NEW, b"x" * 900)
    store = file_store(dynamo, contents)
    assert (await store.usage("acme")).size_bytes == 900
    dynamo.clock.now += 1_801
    for _ in range(3):
        await store.create(NEW, b"y" * 1_000)
    assert await store.usage("acme") == FileUsage(files=3, size_bytes=3_000)
    assert await Host(contents, contents).stored_bytes() == 3_000


async def test_c70_many_deletions_of_one_file_at_once_are_one(
    honest: DynamoStores, tmp_path: Path
) -> None:
    """All have found the file before the first one deletes it."""
    found = 0
    all_found = asyncio.Event()

    class Together:
        async def call(
            self, operation: str, payload: dict[str, object], *, attempts_max: int = ATTEMPTS_MAX
        ) -> AwsReply:
            nonlocal found
            if operation == "TransactWriteItems" and not all_found.is_set():
                found += 1
                if found == 24:
                    all_found.set()
                await all_found.wait()
            return await honest.client.call(operation, payload, attempts_max=attempts_max)

    contents = FolderFiles(tmp_path)
    file = await file_store(honest, contents).create(NEW, b"text")
    store = file_store(honest, contents, client=Together())  # type: ignore[arg-type]
    deleted = await asyncio.gather(*(store.delete("acme", file.id, by=TESTER) for _ in range(24)))
    assert deleted.count(True) == 1
    assert await store.usage("acme") == FileUsage()
