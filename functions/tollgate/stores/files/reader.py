"""Reads the uploaded files that requests refer to, using the client for all other objects."""

from typing import Final

from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import refusing_when_unavailable
from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import Clock
from tollgate.core.files.stored import FoundFile
from tollgate.stores.files.arrivals import Arrivals
from tollgate.stores.files.rows import find_file, object_of

# Timeout for reading a whole file: 40 MB take less than a second within a region.
_READ_TIMEOUT_S: Final = 30.0


class DynamoFileReader:
    """Implements `engine.gateway.FileReader`; the reader never removes files."""

    def __init__(self, client: AwsCaller, table: str, objects: ObjectStore, clock: Clock) -> None:
        self._client = client
        self._table = table
        self._objects = objects
        self._arrivals = Arrivals(client, table, objects)
        self._clock = clock

    async def find(self, workspace_id: str, file_id: str) -> FoundFile | None:
        """Return a completely uploaded file of this workspace; None if there is none.

        Raises RequestError if the content differs from the announcement.
        """
        with refusing_when_unavailable():
            file = await find_file(
                self._client, self._table, workspace_id, file_id, now_s=self._clock.now_s()
            )
            if file is not None and file.awaited_until_s is not None:
                file = await self._arrivals.check(file)
        if file is None:
            return None
        return FoundFile(
            place=object_of(file),
            member_id=file.member_id,
            filename=file.filename,
            media_type=file.media_type,
            size_bytes=file.size_bytes,
        )

    async def read(self, place: str) -> bytes | None:
        """Return the content of a file by its key; None if it was deleted."""
        with refusing_when_unavailable():
            return await self._objects.get(place, timeout_s=_READ_TIMEOUT_S)
