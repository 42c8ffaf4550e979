"""The state of jobs in DynamoDB: one item each, changed only at the revision that was read."""

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Final, Generic

from msgspec import Struct, json
from msgspec.structs import replace

from tollgate.aws.attributes import Item, binary, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import (
    ConditionFailed,
    StoreUnavailable,
    TransactionCancelled,
    refusing_when_unavailable,
)
from tollgate.core.batches import BATCH_PREFIX, Batch
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.errors import invalid_request
from tollgate.core.ids import IdSource, is_id
from tollgate.core.pages import Page
from tollgate.core.shadows import SHADOW_PREFIX, ShadowRun
from tollgate.stores.aws.decoding import decode_items, read_binary, read_text, reads_an_item
from tollgate.stores.aws.expressions import IF_PRESENT, SAME_REVISION
from tollgate.stores.aws.items import AnyItem
from tollgate.stores.aws.record_items import BatchItem, JobEventItem, OpenBatchItem
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import get_item, query_rows
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.batches.keys import OPEN_BATCHES, batch_partition, job_event_row, job_key
from tollgate.stores.ports.batches import AnyJob, BatchPlace
from tollgate.stores.rules.webhook_events import event_of_job

# Workers change a job at the start and at the end of each step, so conflicts are short.
_CHANGES_MAX: Final = 20
_PAUSE_MAX_S: Final = 0.2
_READ_AT_ONCE: Final = 100
JOB_PAGE_MAX: Final = 100
# Rounds of webhooks read an event within minutes, unless they are interrupted.
_EVENT_KEPT_S: Final = 7 * DAY_S


class JobKind(Struct, Generic[AnyJob], frozen=True, kw_only=True):
    """One kind of jobs: a row for each is all that the store knows about kinds."""

    state: type[AnyJob]
    """The struct that is stored as JSON."""
    prefix: str
    """The start of the ids."""
    rows: str
    """The start of the sort keys, in the workspace's partition and in the list of open jobs."""


BATCHES: Final = JobKind(state=Batch, prefix=BATCH_PREFIX, rows="B#")
SHADOWS: Final = JobKind(state=ShadowRun, prefix=SHADOW_PREFIX, rows="S#")


class DynamoJobStore(Generic[AnyJob]):
    """Implements `stores.ports.batches.JobStore` for one kind of jobs."""

    def __init__(
        self,
        client: AwsCaller,
        table: str,
        kind: JobKind[AnyJob],
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._client = client
        self._table = table
        self._kind = kind
        self._ids = ids
        self._clock = clock

    async def create(self, job: AnyJob) -> None:
        listed = self._key(OPEN_BATCHES, job.id) | {
            OpenBatchItem.WORKSPACE: string(job.workspace_id)
        }
        with refusing_when_unavailable():
            await transact(
                self._client,
                self._ids,
                [put_if_absent(self._table, item) for item in (self._encode(job), listed)],
            )

    async def get(self, place: BatchPlace) -> AnyJob | None:
        if not is_id(self.bare(place.batch_id)):
            return None
        with refusing_when_unavailable():
            key = self._key(batch_partition(place.workspace_id), place.batch_id)
            item = await get_item(self._client, self._table, key)
            return None if item is None else self.decode(item)

    async def change(
        self, place: BatchPlace, change: Callable[[AnyJob], AnyJob | None]
    ) -> AnyJob | None:
        for _ in range(_CHANGES_MAX):
            stored = await self.get(place)
            changed = None if stored is None else change(stored)
            if stored is None or changed is None or changed is stored:
                return changed
            changed = replace(changed, revision=stored.revision + 1)
            with refusing_when_unavailable():
                if await self._replace(changed, stored.revision):
                    return changed
            await self._clock.sleep(_PAUSE_MAX_S * self._ids.uniform())
        with refusing_when_unavailable():
            raise StoreUnavailable("the job is changed too often", maybe_applied=False)

    async def delete(self, place: BatchPlace) -> bool:
        deletion = {
            "TableName": self._table,
            "Key": self._key(batch_partition(place.workspace_id), place.batch_id),
            "ConditionExpression": IF_PRESENT,
        }
        with refusing_when_unavailable():
            try:
                await self._client.call("DeleteItem", deletion)
            except ConditionFailed:
                return False
        return True

    async def open_jobs(self) -> Sequence[BatchPlace]:
        with refusing_when_unavailable():
            rows = await all_rows(self._client, self._table, OPEN_BATCHES, self._kind.rows)
        return decode_items(partial(_read_place, kind=self._kind), rows)[0]

    async def page_of(
        self,
        workspace_id: str,
        is_shown: Callable[[AnyJob], bool],
        *,
        limit: int,
        after: str | None = None,
        oldest_first: bool = False,
    ) -> Page[AnyJob]:
        """Return a page of a workspace's jobs after `after`, without those that are not shown."""
        if after is not None and not is_id(self.bare(after)):
            name = self._kind.prefix.rstrip("_")
            raise invalid_request(f"after: must be the id of a {name}.", "after")
        partition = batch_partition(workspace_id)
        start = None if after is None else self._key(partition, after)
        limit, found, corrupt = min(limit, JOB_PAGE_MAX), list[AnyJob](), list[str]()
        with refusing_when_unavailable():
            while len(found) <= limit:
                rows, start = await query_rows(
                    self._client,
                    self._table,
                    partition,
                    self._kind.rows,
                    after=start,
                    limit=_READ_AT_ONCE,
                    backwards=not oldest_first,
                )
                jobs, names = decode_items(self.decode, rows)
                found += filter(is_shown, jobs)
                corrupt += names
                if start is None:
                    break
        page = tuple(found[:limit])
        following = page[-1].id if len(found) > limit else None
        return Page(found=page, next=following, unreadable=tuple(corrupt))

    def decode(self, item: Item) -> AnyJob:
        """Decode a job; raise CorruptItem if the item is invalid."""
        return _read_job(item, self._kind.state)

    def bare(self, job_id: str) -> str:
        """Return an id without the prefix of its kind."""
        return job_id.removeprefix(self._kind.prefix)

    async def _replace(self, job: AnyJob, revision: int) -> bool:
        """Write a job over the state of a revision; return False if that state has changed."""
        put: dict[str, object] = {
            "TableName": self._table,
            "Item": self._encode(job) | self._expiry(job),
            "ConditionExpression": SAME_REVISION,
            "ExpressionAttributeValues": {":rev": number(revision)},
        }
        try:
            if job.is_ended:
                listed = {"TableName": self._table, "Key": self._key(OPEN_BATCHES, job.id)}
                events = [
                    {"Put": {"TableName": self._table, "Item": item}} for item in self._events(job)
                ]
                await transact(self._client, self._ids, [{"Put": put}, {"Delete": listed}, *events])
            else:
                await self._client.call("PutItem", put)
        except (ConditionFailed, TransactionCancelled):
            return False
        return True

    def _expiry(self, job: AnyJob) -> Item:
        """Return the attribute by which a job that has ended is deleted with its results."""
        if not job.is_ended:
            return {}
        return {BatchItem.DELETE_AT: number(int(self._clock.now_s()) + job.kept_s)}

    def _events(self, job: AnyJob) -> Iterator[Item]:
        """Yield the item that announces the end of a job to webhooks, if its kind has an event."""
        if job.event_type is None:
            return
        at_ms = int(self._clock.now_s() * 1_000)
        row = job_event_row(at_ms, self.bare(job.id))
        event = event_of_job(job, job.event_type, at_ms)
        yield {
            **job_key(batch_partition(job.workspace_id), row),
            JobEventItem.EVENT: string(json.encode(event).decode()),
            JobEventItem.DELETE_AT: number(at_ms // 1_000 + _EVENT_KEPT_S),
        }

    def _encode(self, job: AnyJob) -> Item:
        return {
            **self._key(batch_partition(job.workspace_id), job.id),
            BatchItem.STATE: binary(json.encode(job)),
            BatchItem.REVISION: number(job.revision),
        }

    def _key(self, partition: str, job_id: str) -> Item:
        return job_key(partition, self._kind.rows + self.bare(job_id))


@reads_an_item
def _read_job(item: Item, state: type[AnyJob]) -> AnyJob:
    return json.decode(read_binary(item, BatchItem.STATE), type=state)


@reads_an_item
def _read_place(item: Item, kind: JobKind[AnyJob]) -> BatchPlace:
    bare = read_text(item, AnyItem.SORT).removeprefix(kind.rows)
    return BatchPlace(read_text(item, OpenBatchItem.WORKSPACE), kind.prefix + bare)
