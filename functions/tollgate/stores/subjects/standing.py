"""The store of legal holds and erasures in DynamoDB."""

from typing import Final, TypeVar

from msgspec import Struct, json
from msgspec.structs import replace

from tollgate.aws.attributes import AttributeValue, Item, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreUnavailable, TransactionCancelled, refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.errors import invalid_request
from tollgate.core.ids import IdSource
from tollgate.core.pages import Page
from tollgate.core.records.audit import Actor
from tollgate.core.records.subjects import (
    Erasure,
    LegalHold,
    PrivacySubject,
    check_room,
    refuse_held,
)
from tollgate.stores.aws.decoding import decode_items, read_number, read_text, reads_an_item
from tollgate.stores.aws.expressions import IF_ABSENT, SAME_STANDING
from tollgate.stores.aws.items import StandingItem, WorkspaceItem
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import (
    Tables,
    get_item,
    level_row_key,
    query_rows,
    standing_key,
    workspace_key,
)
from tollgate.stores.aws.transactions import transact
from tollgate.stores.people.level_items import is_tombstone
from tollgate.stores.ports.subjects import ERASURES_PAGE_MAX
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.rules.account import LOCKED
from tollgate.stores.rules.subject_entries import (
    erasure_finished,
    erasure_requested,
    hold_placed,
    hold_released,
)

_HOLDS: Final = "H#"
_ERASURES: Final = "E#"
_ERASER: Final = Actor(kind="process", id="erasure")
_Standing = TypeVar("_Standing", LegalHold, Erasure)


class DynamoSubjectStore:
    """Implements `stores.ports.subjects.SubjectStore`, and stores the progress of rounds."""

    def __init__(self, client: AwsCaller, tables: Tables, *, ids: IdSource, clock: Clock) -> None:
        self._client = client
        self._table = tables.core
        self._ids = ids
        self._clock = clock
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def holds(self, workspace_id: str) -> tuple[LegalHold, ...]:
        found = await self.all_holds(workspace_id)
        return tuple(held for held in found if held.released_s is None)

    async def all_holds(self, workspace_id: str) -> tuple[LegalHold, ...]:
        """Return the holds of a workspace, including released ones that have copies left."""
        return await self._all(workspace_id, _HOLDS, LegalHold)

    async def check(self, subject: PrivacySubject) -> tuple[LegalHold, ...]:
        """Return the holds of a workspace; raise AccessError if one covers the subject."""
        holds = await self.holds(subject.workspace_id)
        refuse_held(subject, holds)
        return holds

    async def hold(self, held: LegalHold, *, by: Actor) -> bool:
        key = self._hold_key(held.subject)
        with refusing_when_unavailable():
            old = await self._find(key, LegalHold)
            if old is not None and old.released_s is None:
                return False
            check_room(len(await self.holds(held.subject.workspace_id)), "legal holds")
            await self._put(key, old, held, *self._entries.puts(hold_placed(held), by))
        return True

    async def release(self, held: LegalHold, *, by: Actor) -> bool:
        key = self._hold_key(held.subject)
        with refusing_when_unavailable():
            old = await self._find(key, LegalHold)
            if old is None or old.released_s is not None:
                return False
            new = replace(old, released_s=int(self._clock.now_s()))
            await self._put(key, old, new, *self._entries.puts(hold_released(old), by))
        return True

    async def erasures(
        self, workspace_id: str, *, after: str | None = None, limit: int = ERASURES_PAGE_MAX
    ) -> Page[Erasure]:
        start = None if after is None else standing_key(workspace_id, _ERASURES + after)
        with refusing_when_unavailable():
            rows, end = await query_rows(
                self._client,
                self._table,
                _partition(workspace_id),
                _ERASURES,
                after=start,
                limit=limit,
            )
        found, unreadable = decode_items(lambda row: _decode(row, Erasure), rows)
        last = None if end is None else read_text(end, StandingItem.SORT).removeprefix(_ERASURES)
        return Page(found=tuple(found), next=last, unreadable=tuple(unreadable))

    async def open_erasures(self, workspace_id: str) -> tuple[Erasure, ...]:
        """Return the erasures of a workspace that are not finished."""
        found = await self._all(workspace_id, _ERASURES, Erasure)
        return tuple(erasure for erasure in found if erasure.finished_s is None)

    async def request(self, subject: PrivacySubject, *, by: Actor) -> Erasure:
        await self.check(subject)
        key = self._erasure_key(subject)
        with refusing_when_unavailable():
            await self._check_ended(subject)
            old = await self._find(key, Erasure)
            if old is not None and old.finished_s is None:
                return old
            check_room(len(await self.open_erasures(subject.workspace_id)), "open erasures")
            new = Erasure(subject=subject, requested_s=int(self._clock.now_s()), requested_by=by.id)
            await self._put(key, old, new, *self._entries.puts(erasure_requested(subject), by))
        return new

    async def note_preserved(self, held: LegalHold, now_s: int) -> None:
        """Store the time of a round that preserved what a hold covers."""
        key = self._hold_key(held.subject)
        with refusing_when_unavailable():
            await self._put(key, held, replace(held, preserved_s=now_s))

    async def forget_hold(self, held: LegalHold) -> None:
        """Delete a released hold that has no copies left."""
        delete = {
            "TableName": self._table,
            "Key": self._hold_key(held.subject),
            "ConditionExpression": SAME_STANDING,
            "ExpressionAttributeValues": {":was": _encode(held)},
        }
        with refusing_when_unavailable():
            await self._client.call("DeleteItem", delete)

    async def note_progress(self, old: Erasure, new: Erasure) -> None:
        """Store the progress of an erasure; the end of it adds the proof to the audit log."""
        entry: list[object] = []
        if new.finished_s is not None:
            entry = self._entries.puts(erasure_finished(new), _ERASER)
        with refusing_when_unavailable():
            await self._put(self._erasure_key(old.subject), old, new, *entry)

    async def _check_ended(self, subject: PrivacySubject) -> None:
        """Raise RequestError unless a member was removed, or a workspace is locked."""
        workspace_id = subject.workspace_id
        if subject.kind == "member":
            row_key = level_row_key("member", workspace_id, subject.id)
            row = await get_item(self._client, self._table, row_key)
            if row is None or not is_tombstone(row):
                raise invalid_request("Only a member who was removed can be erased.", "id")
        if subject.kind == "workspace":
            row = await get_item(self._client, self._table, workspace_key(workspace_id))
            if row is None or read_number(row, WorkspaceItem.LOCK) != LOCKED:
                raise invalid_request("Only a locked workspace can be erased.", "id")

    async def _all(
        self, workspace_id: str, prefix: str, kind: type[_Standing]
    ) -> tuple[_Standing, ...]:
        with refusing_when_unavailable():
            rows = await all_rows(self._client, self._table, _partition(workspace_id), prefix)
        return tuple(_decode(row, kind) for row in rows)

    async def _find(self, key: Item, kind: type[_Standing]) -> _Standing | None:
        row = await get_item(self._client, self._table, key)
        return None if row is None else _decode(row, kind)

    async def _put(
        self, key: Item, old: LegalHold | Erasure | None, new: Struct, *entry: object
    ) -> None:
        """Replace an item that still has the state `old`; raise StoreUnavailable otherwise."""
        put: dict[str, object] = {
            "TableName": self._table,
            "Item": {**key, StandingItem.STATE: _encode(new)},
            "ConditionExpression": IF_ABSENT if old is None else SAME_STANDING,
        }
        if old is not None:
            put["ExpressionAttributeValues"] = {":was": _encode(old)}
        try:
            await transact(self._client, self._ids, [{"Put": put}, *entry])
        except TransactionCancelled as cancelled:
            raise StoreUnavailable(
                "the hold or erasure changed", maybe_applied=False
            ) from cancelled

    def _hold_key(self, subject: PrivacySubject) -> Item:
        return standing_key(subject.workspace_id, _HOLDS + subject.place)

    def _erasure_key(self, subject: PrivacySubject) -> Item:
        return standing_key(subject.workspace_id, _ERASURES + subject.place)


def _partition(workspace_id: str) -> str:
    return read_text(standing_key(workspace_id, ""), StandingItem.PARTITION)


def _encode(standing: Struct) -> AttributeValue:
    return string(json.encode(standing).decode())


@reads_an_item
def _decode(row: Item, kind: type[_Standing]) -> _Standing:
    return json.decode(read_text(row, StandingItem.STATE), type=kind)
