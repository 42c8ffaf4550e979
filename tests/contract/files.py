"""Stores of files over any of the engines and contents, with small caps."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from msgspec.structs import replace

from tests.buckets import create_bucket
from tests.stores import REGION, DynamoStores, HandClock
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.sigv4 import Credentials
from tollgate.core.files.stored import FileCap, FileCaps, NewFile
from tollgate.core.ids import IdSource
from tollgate.stores.files.bucket import BucketFiles
from tollgate.stores.files.contents import FileContents
from tollgate.stores.files.files import DynamoFileStore
from tollgate.stores.files.folder import FolderFiles
from tollgate.stores.files.uploads import DynamoUploadStore

CAPS = FileCaps(
    file_bytes_max=1_000,
    workspace=FileCap(files_max=40, bytes_max=4_000),
    unfunded=FileCap(files_max=40, bytes_max=4_000),
    key=FileCap(files_max=30, bytes_max=3_000),
)
NEW = NewFile(
    workspace_id="acme",
    key_id="Na1b2c3d4e5f6g7",
    filename="notes.txt",
    purpose="user_data",
    media_type="text/plain",
)
OTHER_KEY = replace(NEW, key_id="Nz1b2c3d4e5f6g7")


@asynccontextmanager
async def contents_in(
    engine: str, *, moto_url: str, bucket: str, folder: Path
) -> AsyncIterator[FileContents]:
    """Make contents in S3 or in a folder."""
    if engine == "folder":
        yield FolderFiles(folder)
        return
    owner = Credentials("test", "test")
    create_bucket(moto_url, bucket)
    store = BucketFiles(bucket, REGION, clock=HandClock(), credentials=owner, endpoint_url=moto_url)
    yield store
    await store.close()


def file_store(
    stores: DynamoStores,
    contents: FileContents,
    caps: FileCaps = CAPS,
    client: AwsCaller | None = None,
) -> DynamoFileStore:
    """Return a store of files over the tables of `stores`."""
    return DynamoFileStore(
        client or stores.client,
        stores.tables,
        contents,
        caps,
        ids=IdSource(stores.clock),
        clock=stores.clock,
    )


def upload_store(
    stores: DynamoStores, contents: FileContents, caps: FileCaps = CAPS
) -> DynamoUploadStore:
    """Return a store of uploads in parts over the tables of `stores`."""
    return DynamoUploadStore(
        stores.client,
        stores.tables,
        contents,
        file_store(stores, contents, caps),
        ids=IdSource(stores.clock),
        clock=stores.clock,
    )
