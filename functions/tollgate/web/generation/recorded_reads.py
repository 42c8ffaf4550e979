"""Records stored content of others that a request of an owner or admin passes to a model."""

from typing import Final

from tollgate.core.files.stored import FoundFile
from tollgate.core.records.audit import Actor
from tollgate.engine.gateway import FileReader
from tollgate.stores.ports.access_log import AccessLog, ReadContent


class RecordedReads:
    """The reads of one request of `by`, whose own content is that of `owner`."""

    def __init__(self, access_log: AccessLog, by: Actor, owner: str | None) -> None:
        self._access_log: Final = access_log
        self._by: Final = by
        self._owner: Final = owner

    async def note(self, kind: ReadContent, target: str, owner: object) -> None:
        """Record a read unless the content is the caller's own; raise LedgerError on failure."""
        if owner != self._owner:
            await self._access_log.note_read(kind, target, by=self._by)


class RecordedFiles:
    """Implements `engine.gateway.FileReader` for a request whose reads are recorded."""

    def __init__(self, files: FileReader, reads: RecordedReads) -> None:
        self._files: Final = files
        self._reads: Final = reads

    async def find(self, workspace_id: str, file_id: str) -> FoundFile | None:
        """Return a file once its entry is written."""
        found = await self._files.find(workspace_id, file_id)
        if found is not None:
            await self._reads.note("file", file_id, found.member_id)
        return found

    async def read(self, place: str) -> bytes | None:
        """Return the content at a storage key, which `find` has recorded."""
        return await self._files.read(place)
