"""The stored generations and objects of a subject, read page by page."""

from collections.abc import AsyncIterator
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, refusing_when_unavailable
from tollgate.aws.objects import ObjectStore
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.records.activity import day_of
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.records.subjects import PrivacySubject
from tollgate.stores.aws.expressions import IF_PRESENT
from tollgate.stores.aws.record_items import GenerationItem
from tollgate.stores.records.contents import ObjectContentLog
from tollgate.stores.records.generations import DynamoGenerationStore, record_item

# Number of records in a page.
_PAGE: Final = 250


class RecordPage(Struct, frozen=True, kw_only=True):
    """A subject's records in one page of a day, and the names of corrupt records."""

    day: str
    found: tuple[GenerationRecord, ...]
    unreadable: tuple[str, ...]


class StoredRecords:
    """Reads and changes the records of subjects, with the objects that belong to each record."""

    def __init__(
        self,
        client: AwsCaller,
        table: str,
        generations: DynamoGenerationStore,
        contents: tuple[ObjectContentLog, ...],
        *,
        retention_s: int,
        clock: Clock,
    ) -> None:
        self._client = client
        self._table = table
        self._generations = generations
        self._contents = contents
        self._retention_s = retention_s
        self._clock = clock

    async def pages(
        self, subject: PrivacySubject, *, since_s: int | None = None, until_s: int | None = None
    ) -> AsyncIterator[RecordPage]:
        """Yield the records of a subject by day; by default, for all days with records."""
        now_s = int(self._clock.now_s())
        first_s = now_s - self._retention_s - DAY_S if since_s is None else since_s
        last_s = now_s + DAY_S if until_s is None else until_s
        for second in range(first_s // DAY_S * DAY_S, last_s + 1, DAY_S):
            day = day_of(second)
            async for page in self._generations.read_day(subject.workspace_id, day, page_max=_PAGE):
                found = tuple(
                    record
                    for record in page.found
                    if subject.has_record(record)
                    and (until_s is None or record.created_s < until_s)
                )
                if found or page.unreadable:
                    yield RecordPage(day=day, found=found, unreadable=page.unreadable)

    async def get(self, workspace_id: str, generation_id: str) -> GenerationRecord | None:
        """Return a record; None if it does not exist."""
        return await self._generations.get(workspace_id, generation_id)

    async def delete_content(self, record: GenerationRecord) -> None:
        """Delete the content and the response of a generation."""
        for contents in self._contents:
            await contents.delete(record.workspace_id, record.id)

    def names(self, record: GenerationRecord) -> tuple[str, ...]:
        """Return the object keys that a generation's content and response may have."""
        return tuple(
            name for log in self._contents for name in log.names(record.workspace_id, record.id)
        )

    def folders(self, workspace_id: str) -> tuple[str, ...]:
        """Return the key prefixes of a workspace's contents and responses."""
        return tuple(name for log in self._contents for name in log.folders(workspace_id))

    async def put(self, record: GenerationRecord, *, expires: bool) -> None:
        """Replace a record if it still exists, with a time to live if `expires` is set."""
        item: Item = record_item(record, retention_s=self._retention_s)
        if not expires:
            del item[GenerationItem.DELETE_AT]
        put = {"TableName": self._table, "Item": item, "ConditionExpression": IF_PRESENT}
        try:
            with refusing_when_unavailable():
                await self._client.call("PutItem", put)
        except ConditionFailed:
            # The record expired in the meantime.
            return


def without_person(record: GenerationRecord) -> GenerationRecord:
    """Return a record without what callers said about the person; cost and usage stay."""
    return replace(
        record,
        user=None,
        caller_labels={},
        client_request_id=None,
        trace=replace(record.trace, metadata={}),
    )


async def delete_below(objects: ObjectStore, prefix: str) -> int:
    """Delete all objects below a prefix; return their number."""
    deleted = 0
    async for group in objects.list(prefix):
        for stored in group:
            await objects.delete(stored.key)
            deleted += 1
    return deleted
