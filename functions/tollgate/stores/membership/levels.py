"""Rows and states of teams and members: create, list, change.

A level has a state, like a key's, from its first limit on. While it has none, no hold counts
against it; its first limit, or the first after a time without any, comes with a state that has
what the activity of the running periods shows. Later changes reach the state as those of a key do.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import Final, Generic, TypeVar

from msgspec import Struct

from tollgate.core.audit import Actor
from tollgate.core.clock import DAY_S, Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.limits import AboveKey, Period
from tollgate.core.pages import Page
from tollgate.stores.aws.attributes import Item, number, string
from tollgate.stores.aws.aws_json import AwsCaller
from tollgate.stores.aws.decoding import (
    decode_items,
    read_number,
    read_numbers_by_name,
    read_text,
)
from tollgate.stores.aws.expressions import (
    IF_ABSENT,
    LEVEL_CHANGE,
    LEVEL_CHANGE_PENDING,
    STATE_SEED,
)
from tollgate.stores.aws.failures import StoreUnavailable, TransactionCancelled
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
from tollgate.stores.membership.level_items import (
    encode_level_settings,
    id_of_row,
    is_tombstone,
    slices_of,
    state_keys,
    workspace_of_row,
)
from tollgate.stores.membership.pending import PendingLevels
from tollgate.stores.membership.rows import read_spending, seeded_state
from tollgate.stores.people import LevelSpending
from tollgate.stores.records.activity import DynamoActivityStore
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.records.generations import DynamoGenerationStore
from tollgate.stores.rules.audit_entries import AuditedChange
from tollgate.stores.rules.level_settings import LevelSettings, counts_holds, state_settings
from tollgate.stores.rules.periods import PERIODS, bucket_names

# Other writers may change a level in between, but not for ever.
LEVEL_ROUNDS_MAX: Final = 5
# How far back a new state looks: a total counts the last year.
_SEED_DAYS: Final = 366
_Settings = TypeVar("_Settings", bound=LevelSettings)
_Shown = TypeVar("_Shown")


class LevelChange(Struct, Generic[_Settings], frozen=True, kw_only=True):
    """A change of a level's settings, and what it needs beside the level's own row."""

    edit: Callable[[_Settings], _Settings]
    # Returns the actions of a transaction by which the level joins what the new settings name.
    join: Callable[[_Settings, _Settings], Awaitable[list[object]]] | None = None
    by: Actor


class Levels(Generic[_Settings, _Shown]):
    """The rows and states of one kind of level, teams or members."""

    def __init__(
        self,
        client: AwsCaller,
        tables: Tables,
        generations: DynamoGenerationStore,
        *,
        level: AboveKey,
        is_id: Callable[[str], bool],
        read: Callable[[Item], _Settings],
        show: Callable[[Item, Mapping[str, LevelSpending]], _Shown],
        ids: IdSource,
        clock: Clock,
    ) -> None:
        self._client = client
        self._tables = tables
        self._generations = generations
        self._level: AboveKey = level
        self._is_id = is_id
        self._read = read
        self._show = show
        self._ids = ids
        self._clock = clock
        self._pending = PendingLevels(client, tables, ids=ids, clock=clock)
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def create(self, row: Item, settings: _Settings, *others: object, by: Actor) -> bool:
        """Put a row, its state if it has a limit, and its entry; return False if the id is taken.

        `others` are further actions, which may fail the creation too.
        """
        workspace_id = workspace_of_row(row)
        level_id = id_of_row(row)
        content: Item = {
            **row,
            LevelItem.SETTINGS: encode_level_settings(settings),
            LevelItem.CREATED: number(int(self._clock.now_s())),
            LevelItem.REVISION: number(0),
        }
        actions = [put_if_absent(self._tables.core, content), *others]
        if settings.is_limited:
            actions.append(await self._seed(workspace_id, level_id, settings, revision=0))
        actions += self.entry(by, "create", row, after=settings)
        try:
            await transact(self._client, self._ids, actions)
        except TransactionCancelled:
            return False
        return True

    async def row(self, workspace_id: str, level_id: str) -> Item | None:
        """Return the row of a level, which may be a tombstone; None for what is no id of one."""
        if not self._is_id(level_id):
            return None
        key = level_row_key(self._level, workspace_id, level_id)
        return await get_item(self._client, self._tables.core, key)

    async def find(self, workspace_id: str, level_id: str) -> _Shown | None:
        """Return a level, gone or not; None if there never was one with this id."""
        row = await self.row(workspace_id, level_id)
        return None if row is None else await self._shown(row)

    async def page(self, workspace_id: str, *, after: str | None, limit: int) -> Page[_Shown]:
        """Return a page in the order of ids, from the one after `after`."""
        start = None
        if after is not None:
            if not self._is_id(after):
                raise RequestError(ErrorCode.INVALID_REQUEST, "This is no cursor.", param="cursor")
            start = level_row_key(self._level, workspace_id, after)
        rows, end = await query_rows(
            self._client,
            self._tables.core,
            f"W#{workspace_id}",
            level_rows_prefix(self._level),
            after=start,
            limit=limit,
        )
        spending = await self._spending(rows)
        found, unreadable = decode_items(lambda row: self._show(row, spending), rows)
        return Page(
            found=tuple(found),
            next=None if end is None else id_of_row(end),
            unreadable=tuple(unreadable),
        )

    async def change(
        self, workspace_id: str, level_id: str, change: LevelChange[_Settings]
    ) -> _Shown | None:
        """Replace settings; return the level that stands, None if there is no such level."""
        for _ in range(LEVEL_ROUNDS_MAX):
            row = await self.row(workspace_id, level_id)
            if row is None or is_tombstone(row):
                return None
            if LevelItem.PENDING in row:
                await self._pending.apply(self._level, row)
                continue
            old = self._read(row)
            new = change.edit(old)
            if new == old:
                return await self._shown(row)
            joins = [] if change.join is None else await change.join(old, new)
            try:
                await self._decide(row, old, new, joins, by=change.by)
            except TransactionCancelled:
                continue
            changed = await self.row(workspace_id, level_id)
            if changed is not None and LevelItem.PENDING in changed:
                await self._pending.apply(self._level, changed)
            return None if changed is None else await self._shown(changed)
        raise StoreUnavailable(f"{self._level} {level_id} keeps changing", maybe_applied=False)

    def entry(
        self,
        by: Actor,
        verb: str,
        row: Item,
        *,
        before: Struct | None = None,
        after: Struct | None = None,
    ) -> list[object]:
        """Return the actions that put the entry of a change into the audit log."""
        change = AuditedChange(
            action=f"{self._level}.{verb}",
            target=id_of_row(row),
            workspace_id=workspace_of_row(row),
            before=before,
            after=after,
        )
        return self._entries.puts(change, by)

    async def _shown(self, row: Item) -> _Shown:
        return self._show(row, await self._spending([row]))

    async def _spending(self, rows: Sequence[Item]) -> Mapping[str, LevelSpending]:
        """Return what the states of these levels have counted, by the ids of those with a state."""
        keys = [key for row in rows for key in state_keys(self._level, row)]
        states: dict[str, list[Item]] = {}
        for state in await get_items(self._client, self._tables.ledger, keys):
            name = read_text(state, AnyItem.PARTITION)
            owner = owner_of_state(name, workspace_of_row(rows[0]))
            states.setdefault(owner.id, []).append(state)
        counted: dict[str, LevelSpending] = {}
        for level_id, (first, *others) in states.items():
            # What is corrupt is logged, and reported by the audit of its workspace.
            found, _ = decode_items(partial(self._read_spending, others), [first])
            counted.update((level_id, spending) for spending in found)
        return counted

    def _read_spending(self, others: Sequence[Item], state: Item) -> LevelSpending:
        return read_spending(state, self._clock.now_s(), others)

    async def _decide(
        self, row: Item, old: _Settings, new: _Settings, joins: Sequence[object], *, by: Actor
    ) -> None:
        """Write a change with its entry, and the state that its first limit needs."""
        was = read_number(row, LevelItem.REVISION)
        counted = counts_holds(old, slices_of(row))
        pending = (
            counted
            and counts_holds(new, slices_of(row))
            and state_settings(new) != state_settings(old)
        )
        write = LEVEL_CHANGE_PENDING if pending else LEVEL_CHANGE
        values = {
            ":cfg": encode_level_settings(new),
            ":rev": number(was + 1),
            ":was": number(was),
            **({":one": number(1)} if pending else {":sl": number(slices_of(row))}),
        }
        workspace_id, level_id = workspace_of_row(row), id_of_row(row)
        actions: list[object] = [
            {
                "Update": {
                    "TableName": self._tables.core,
                    "Key": level_row_key(self._level, workspace_id, level_id),
                    "UpdateExpression": write.update,
                    "ConditionExpression": write.condition,
                    "ExpressionAttributeValues": values,
                }
            },
            *joins,
        ]
        if new.is_limited and not counted:
            actions.append(await self._seed(workspace_id, level_id, new, revision=was + 1))
        actions += self.entry(by, "change", row, before=old, after=new)
        await transact(self._client, self._ids, actions)

    async def _seed(
        self, workspace_id: str, level_id: str, settings: _Settings, *, revision: int
    ) -> object:
        """Return the action that puts a state with what the running periods have cost so far.

        It fails where a hold from an earlier time with limits ends meanwhile.
        """
        key = self._state_key(workspace_id, level_id)
        state = await get_item(self._client, self._tables.ledger, key)
        second = int(self._clock.now_s())
        used = await self._used(workspace_id, level_id, second)
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
        seeded = seeded_state(
            key, state_settings(settings), used_nano_usd=used, holds=holds, second=second
        )
        put["Item"] = {
            **seeded,
            KeyStateItem.WORKSPACE: string(workspace_id),
            KeyStateItem.REVISION: number(revision),
        }
        return {"Put": put}

    async def _used(self, workspace_id: str, level_id: str, second: int) -> dict[Period, int]:
        """Return what a level's label has cost in each running period, by the activity."""
        # Counted now: a store of its own has cached nothing.
        store = DynamoActivityStore(
            self._client, self._tables, self._generations, clock=self._clock
        )
        since_s = second - _SEED_DAYS * DAY_S
        activity = await store.read(workspace_id, since_s, second + 1)
        used = dict.fromkeys(PERIODS, 0)
        running = bucket_names(second)
        async for row in activity.rows:
            if row.labels.get(self._level) != level_id:
                continue
            of_day = bucket_names(first_second(row.day))
            for period, bucket, now in zip(PERIODS, of_day, running, strict=True):
                if bucket == now:
                    used[period] += row.cost_nano_usd
        return used

    def _state_key(self, workspace_id: str, level_id: str) -> Item:
        return level_state_key(self._level, workspace_id, level_id)


def first_second(day: str) -> int:
    """Return the first Unix second of a UTC day, `2026-11-21`."""
    return int(datetime.fromisoformat(day).replace(tzinfo=UTC).timestamp())
