"""The items and states of teams and members: created, listed and changed here.

A level without limits needs no state: its holds are not counted, unless it has a state from earlier
limits that is divided into slices. Whenever a level gets limits, a state like that of a key is
written, starting with the level's spending in the current periods. Later changes are applied to the
state in the same way as changes to a key.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, Generic, TypeVar

from msgspec import Struct

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreUnavailable, TransactionCancelled, refusing_when_unavailable
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource, created_s
from tollgate.core.limits import AboveKey, Period
from tollgate.core.pages import Page
from tollgate.core.records.audit import Actor
from tollgate.stores.aws.decoding import decode_items, read_number, read_numbers_by_name, read_text
from tollgate.stores.aws.expressions import (
    IF_ABSENT,
    LEVEL_CHANGE,
    LEVEL_CHANGE_PENDING,
    STATE_SEED,
    ConditionalUpdate,
)
from tollgate.stores.aws.items import AnyItem, KeyStateItem, LevelItem
from tollgate.stores.aws.tables import (
    Tables,
    get_item,
    get_items,
    level_row_key,
    level_rows_prefix,
    level_state_key,
    owner_of_state,
    query_rows,
)
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.people.level_items import (
    encode_level_settings,
    id_of_row,
    is_tombstone,
    slices_of,
    state_keys,
    workspace_of_row,
)
from tollgate.stores.people.pending import PendingLevels
from tollgate.stores.people.rows import read_spending, seeded_state
from tollgate.stores.ports.people import PEOPLE_PAGE_MAX, LevelSpending
from tollgate.stores.records.activity import DynamoActivityStore
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.records.generations import DynamoGenerationStore
from tollgate.stores.rules.audit_entries import AuditedChange
from tollgate.stores.rules.level_settings import LevelSettings, counts_holds, state_settings
from tollgate.stores.rules.periods import PERIODS, bucket_names

# Maximum number of attempts to make a change while other writers change the same item.
LEVEL_ROUNDS_MAX: Final = 5
# Number of days of activity that are summed up for a new state. For a `total` limit, only the
# spending of the last year is therefore included.
_SEED_DAYS: Final = 366
_Settings = TypeVar("_Settings", bound=LevelSettings)
_Shown = TypeVar("_Shown")


class LevelKind(Struct, Generic[_Settings, _Shown], frozen=True, kw_only=True):
    """The differences between the items of teams and of members."""

    level: AboveKey
    is_id: Callable[[str], bool]
    id_rule: str
    """Error message that explains which ids are valid."""
    read: Callable[[Item], _Settings]
    show: Callable[[Item, Mapping[str, LevelSpending]], _Shown]


class DynamoLevelStore(Generic[_Settings, _Shown]):
    """Implements `stores.ports.people.LevelStore`: items and states of teams or of members."""

    _kind: LevelKind[_Settings, _Shown]

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        generations: DynamoGenerationStore,
        *,
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._client = client
        self._tables = tables
        self._generations = generations
        self._ids = ids
        self._clock = clock
        self._pending = PendingLevels(client, tables, ids=ids, clock=clock)
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def get(self, workspace_id: str, level_id: str) -> _Shown | None:
        with refusing_when_unavailable():
            return await self._find(workspace_id, level_id)

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = PEOPLE_PAGE_MAX
    ) -> Page[_Shown]:
        start = None
        if after is not None:
            if not self._kind.is_id(after):
                raise RequestError(
                    ErrorCode.INVALID_REQUEST, "The cursor is not valid.", param="cursor"
                )
            start = self._key(workspace_id, after)
        with refusing_when_unavailable():
            rows, end = await query_rows(
                self._client,
                self._tables.core,
                f"W#{workspace_id}",
                level_rows_prefix(self._kind.level),
                after=start,
                limit=limit,
            )
            spending = await self._spending(rows)
            levels, unreadable = decode_items(lambda row: self._kind.show(row, spending), rows)
            return Page(
                found=tuple(levels),
                next=None if end is None else id_of_row(end),
                unreadable=tuple(unreadable),
            )

    async def change(
        self,
        workspace_id: str,
        level_id: str,
        edit: Callable[[_Settings], _Settings],
        *,
        by: Actor,
    ) -> _Shown | None:
        with refusing_when_unavailable():
            for _ in range(LEVEL_ROUNDS_MAX):
                row = await self._row(workspace_id, level_id)
                if row is None or is_tombstone(row):
                    return None
                if LevelItem.PENDING in row:
                    await self._pending.apply(self._kind.level, row)
                    continue
                old = self._kind.read(row)
                new = edit(old)
                if new == old:
                    return await self._shown(row)
                joins = await self._joins(workspace_id, level_id, old, new)
                try:
                    await self._decide(row, old, new, joins, by=by)
                except TransactionCancelled:
                    continue
                changed = await self._row(workspace_id, level_id)
                if changed is not None and LevelItem.PENDING in changed:
                    await self._pending.apply(self._kind.level, changed)
                return None if changed is None else await self._shown(changed)
            raise StoreUnavailable(
                f"{self._kind.level} {level_id} keeps changing", maybe_applied=False
            )

    async def _joins(
        self, workspace_id: str, level_id: str, old: _Settings, new: _Settings
    ) -> Sequence[object]:
        """Return the additional transaction actions that a change of settings needs."""
        return ()

    def _check_id(self, level_id: str) -> None:
        if not self._kind.is_id(level_id):
            raise RequestError(ErrorCode.INVALID_REQUEST, self._kind.id_rule, param="id")

    def _key(self, workspace_id: str, level_id: str) -> Item:
        return level_row_key(self._kind.level, workspace_id, level_id)

    def _update(
        self, workspace_id: str, level_id: str, write: ConditionalUpdate, values: Item
    ) -> object:
        """Return the transaction action that updates the item of a level."""
        key = self._key(workspace_id, level_id)
        return {"Update": write.build(self._tables.core, key, values)}

    async def _put(self, row: Item, settings: _Settings, *extra_actions: object, by: Actor) -> bool:
        """Create a level with an audit log entry and, if it has limits, a state.

        Return False if the id is taken, or if a condition of `extra_actions` fails.
        """
        workspace_id = workspace_of_row(row)
        level_id = id_of_row(row)
        content: Item = {
            **row,
            LevelItem.SETTINGS: encode_level_settings(settings),
            LevelItem.CREATED: number(int(self._clock.now_s())),
            LevelItem.REVISION: number(0),
        }
        actions = [put_if_absent(self._tables.core, content), *extra_actions]
        if settings.is_limited:
            actions.append(await self._seed(workspace_id, level_id, settings, revision=0))
        actions += self._entry(by, "create", row, after=settings)
        try:
            await transact(self._client, self._ids, actions)
        except TransactionCancelled:
            return False
        return True

    async def _row(self, workspace_id: str, level_id: str) -> Item | None:
        """Return a level's item or tombstone; None if there is none or the id is invalid."""
        if not self._kind.is_id(level_id):
            return None
        key = self._key(workspace_id, level_id)
        return await get_item(self._client, self._tables.core, key)

    async def _find(self, workspace_id: str, level_id: str) -> _Shown | None:
        row = await self._row(workspace_id, level_id)
        return None if row is None else await self._shown(row)

    def _entry(
        self,
        by: Actor,
        verb: str,
        row: Item,
        *,
        before: Struct | None = None,
        after: Struct | None = None,
    ) -> Sequence[object]:
        """Return the actions that put a change into the audit log."""
        change = AuditedChange(
            action=f"{self._kind.level}.{verb}",
            target=id_of_row(row),
            workspace_id=workspace_of_row(row),
            before=before,
            after=after,
        )
        return self._entries.puts(change, by)

    async def _shown(self, row: Item) -> _Shown:
        return self._kind.show(row, await self._spending([row]))

    async def _spending(self, rows: Sequence[Item]) -> Mapping[str, LevelSpending]:
        """Return the spending of levels, by id, without the levels that have no state."""
        keys = [key for row in rows for key in state_keys(self._kind.level, row)]
        states: dict[str, list[Item]] = {}
        for state in await get_items(self._client, self._tables.ledger, keys):
            name = read_text(state, AnyItem.PARTITION)
            owner = owner_of_state(name, workspace_of_row(rows[0]))
            states.setdefault(owner.id, []).append(state)
        counted: dict[str, LevelSpending] = {}
        for level_id, (first, *other_slices) in states.items():
            # Corrupt states are logged here, and reported by the audit of their workspace.
            spendings, _ = decode_items(partial(self._read_spending, other_slices), [first])
            counted.update((level_id, spending) for spending in spendings)
        return counted

    def _read_spending(self, other_slices: Sequence[Item], state: Item) -> LevelSpending:
        return read_spending(state, self._clock.now_s(), other_slices)

    async def _decide(
        self, row: Item, old: _Settings, new: _Settings, joins: Sequence[object], *, by: Actor
    ) -> None:
        """Write a change and its audit log entry, and a state if the level gets limits."""
        old_revision = read_number(row, LevelItem.REVISION)
        counted = counts_holds(old, slices_of(row))
        pending = (
            counted
            and counts_holds(new, slices_of(row))
            and state_settings(new) != state_settings(old)
        )
        write = LEVEL_CHANGE_PENDING if pending else LEVEL_CHANGE
        values = {
            ":cfg": encode_level_settings(new),
            ":rev": number(old_revision + 1),
            ":was": number(old_revision),
            **({":one": number(1)} if pending else {":sl": number(slices_of(row))}),
        }
        workspace_id, level_id = workspace_of_row(row), id_of_row(row)
        actions: list[object] = [
            self._update(workspace_id, level_id, write, values),
            *joins,
        ]
        if new.is_limited and not counted:
            actions.append(await self._seed(workspace_id, level_id, new, revision=old_revision + 1))
        actions += self._entry(by, "change", row, before=old, after=new)
        await transact(self._client, self._ids, actions)

    async def _seed(
        self, workspace_id: str, level_id: str, settings: _Settings, *, revision: int
    ) -> object:
        """Return the action that writes a state with the spending of the current periods.

        If the level had limits before, its old state may contain holds. The action fails if such a
        hold is settled in the meantime.
        """
        key = level_state_key(self._kind.level, workspace_id, level_id)
        state = await get_item(self._client, self._tables.ledger, key)
        second = int(self._clock.now_s())
        put: dict[str, object] = {"TableName": self._tables.ledger}
        holds: Mapping[str, int] = {}
        if state is None:
            put["ConditionExpression"] = IF_ABSENT
        else:
            holds = read_numbers_by_name(state, KeyStateItem.HOLDS)
            put["ConditionExpression"] = STATE_SEED
            put["ExpressionAttributeValues"] = {
                ":us": state[KeyStateItem.SPENT],
                ":h": state[KeyStateItem.HOLDS],
            }
        used = await self._used_without(holds, workspace_id, level_id, second)
        seeded = seeded_state(
            key, state_settings(settings), used_nano_usd=used, holds=holds, second=second
        )
        put["Item"] = {
            **seeded,
            KeyStateItem.WORKSPACE: string(workspace_id),
            KeyStateItem.REVISION: number(revision),
        }
        return {"Put": put}

    async def _used_without(
        self, holds: Iterable[str], workspace_id: str, level_id: str, second: int
    ) -> dict[Period, int]:
        """Return the level's spending without the generations whose holds will be settled later.

        A generation may already have its record while its hold is still in the state; the
        settlement of the hold then adds the cost.
        """
        while True:
            settling = await self._settling(workspace_id, holds)
            used = await self._used(workspace_id, level_id, second)
            # A record that was written between the two reads may or may not be in the sum.
            if await self._settling(workspace_id, holds) == settling:
                break
        for id_, cost in settling.items():
            buckets = zip(PERIODS, bucket_names(created_s(id_)), bucket_names(second), strict=True)
            for period, bucket, current in buckets:
                if bucket == current:
                    used[period] -= cost
        return used

    async def _settling(self, workspace_id: str, holds: Iterable[str]) -> dict[str, int]:
        """Return the cost of each hold's generation, if it has a record."""
        records = [await self._generations.get(workspace_id, id_) for id_ in holds]
        return {record.id: record.cost_nano_usd for record in records if record is not None}

    async def _used(self, workspace_id: str, level_id: str, second: int) -> dict[Period, int]:
        """Return the level's spending in each current period, from the daily roll-ups."""
        # A new store is created for each read, because its cache is empty and so cannot return
        # stale roll-ups.
        store = DynamoActivityStore(
            self._client, self._tables, self._generations, ids=self._ids, clock=self._clock
        )
        since_s = second - _SEED_DAYS * DAY_S
        activity = await store.read(workspace_id, since_s, second + 1)
        used = dict.fromkeys(PERIODS, 0)
        running = bucket_names(second)
        async for row in activity.rows:
            if row.labels.get(self._kind.level) != level_id:
                continue
            of_day = bucket_names(first_second(row.day))
            for period, bucket, current in zip(PERIODS, of_day, running, strict=True):
                if bucket == current:
                    used[period] += row.cost_nano_usd
        return used


def first_second(day: str) -> int:
    """Return the first Unix second of a UTC day such as `2026-11-21`."""
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())
