"""Wires the store of uploaded files."""

from msgspec import Struct

from tollgate.core.clock import Clock
from tollgate.core.files.stored import FileCap, FileCaps
from tollgate.core.ids import IdSource
from tollgate.settings import Settings
from tollgate.stores.files.bucket import BucketFiles
from tollgate.stores.files.contents import FileContents
from tollgate.stores.files.files import DynamoFileStore
from tollgate.stores.files.folder import FolderFiles
from tollgate.stores.files.local_uploads import LocalUploads
from tollgate.stores.files.uploads import DynamoUploadStore
from tollgate.wiring.aws import credentials
from tollgate.wiring.stores import Stores


class Files(Struct, frozen=True, kw_only=True):
    """The stores of files and of uploads in parts."""

    store: DynamoFileStore
    uploads: DynamoUploadStore
    local: LocalUploads | None
    """Uploads to this host by signed URLs; None if clients upload to a bucket."""

    async def aclose(self) -> None:
        """Close the connections."""
        await self.store.aclose()


def wire_files(settings: Settings, stores: Stores, clock: Clock) -> Files | None:
    """Return the stores of files; None if the settings name neither a bucket nor a folder."""
    ids = IdSource(clock)
    local = None
    if settings.objects_folder is not None:
        local = LocalUploads(settings.objects_folder, ids.random_bytes(32), clock)
    contents = _contents(settings, clock, local)
    if contents is None:
        return None
    caps = FileCaps(
        file_bytes_max=settings.file_bytes_max,
        workspace=FileCap(
            files_max=settings.workspace_files_max, bytes_max=settings.workspace_file_bytes_max
        ),
        unfunded=FileCap(
            files_max=settings.workspace_files_max, bytes_max=settings.unfunded_file_bytes_max
        ),
        key=FileCap(files_max=settings.key_files_max, bytes_max=settings.key_file_bytes_max),
    )
    client, tables = stores.client, stores.tables
    store = DynamoFileStore(client, tables, contents, caps, ids=ids, clock=clock)
    uploads = DynamoUploadStore(client, tables, contents, store, ids=ids, clock=clock)
    return Files(store=store, uploads=uploads, local=local)


def _contents(settings: Settings, clock: Clock, local: LocalUploads | None) -> FileContents | None:
    if settings.objects_folder is not None:
        return FolderFiles(settings.objects_folder, local)
    if settings.objects_bucket is None:
        return None
    # Without fixed credentials, the AWS library finds and renews temporary credentials.
    fixed = credentials(settings) if settings.aws_access_key_id else None
    return BucketFiles(
        settings.objects_bucket,
        settings.aws_region,
        clock=clock,
        credentials=fixed,
        endpoint_url=settings.s3_endpoint_url,
    )
