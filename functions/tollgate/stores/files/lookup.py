"""The lookup of a file by its id, for the store of files and for requests that name a file."""

from tollgate.aws.aws_json import AwsCaller
from tollgate.core.files.stored import StoredFile
from tollgate.stores.aws.tables import file_key, get_item
from tollgate.stores.files.rows import bare_id, decode_file, is_being_deleted


async def find_file(
    client: AwsCaller, table: str, workspace_id: str, file_id: str, *, now_s: float
) -> StoredFile | None:
    """Return a file of this workspace, None if it is missing, deleted or expired.

    A file whose upload in parts is not completed counts as missing. Another file may still wait for
    its content.
    """
    bare = bare_id(file_id)
    if bare is None:
        return None
    item = await get_item(client, table, file_key(workspace_id, bare))
    if item is None or is_being_deleted(item):
        return None
    file = decode_file(item)
    return None if file.parts is not None or file.is_expired(now_s) else file
