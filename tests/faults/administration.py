"""Crashes and races of administration: no change without an entry, no entry without a change.

Each change is made by a process that is killed before or after each of its writes. Then maintenance
completes what was decided, and the entries, applied one after the other, must give what the stores
show. The change is repeated, and must be there once. At last many processes change one key.

`python -m tests.faults.administration <endpoint> [part]...` prints the first violation of all
parts, or of those that are named: a change, or `race`.
"""

import asyncio
import sys
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Mapping
from contextlib import aclosing
from itertools import count

from msgspec.structs import fields, replace

from tests.faulty_client import Killed
from tests.stores import (
    TESTER,
    DynamoStores,
    HandClock,
    aws_client,
    dynamo_stores,
    fresh_tables,
)
from tollgate.aws.aws_json import ATTEMPTS_MAX, AwsCaller, AwsReply
from tollgate.aws.failures import StoreError
from tollgate.core.errors import AccessError, GatewayError
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import AuditEntry, AuditFilter
from tollgate.stores.aws.tables import Tables
from tollgate.stores.keys.rows import settings_of
from tollgate.stores.keys.writes import KeyWrites
from tollgate.stores.money.budgets import Budgets
from tollgate.stores.money.credit_items import change_of
from tollgate.stores.money.credit_lots import CreditLots
from tollgate.stores.money.workspace_items import lock_change, lock_of
from tollgate.stores.money.workspace_maintenance import WorkspaceMaintenance
from tollgate.stores.people.pending import PendingLevels
from tollgate.stores.people.slices import LevelSlices
from tollgate.stores.ports.administration import NewKey, WorkspaceSettings
from tollgate.stores.rules.audit_entries import describe
from tollgate.stores.rules.key_settings import KeySettings
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings

WORKSPACE = "acme"
WRITES = {"PutItem", "UpdateItem", "DeleteItem", "TransactWriteItems"}
RACE = "race"
RACERS = 8
# Changes that are others when they are repeated.
_REPEATABLE = {"key.rotate", "workspace.grow"}
# Fields of entries that lists do not show.
UNSHOWN = {"workspace_id", "role", "old_secret_expires_at"}
# Values of fields before their first entry; other fields have none.
STARTS = {"locked": "false", "paused": "false", "shards": "1"}

Step = Callable[[DynamoStores, str], Awaitable[object]]


class Crashing:
    """A client whose process is killed at its write number `fatal`, before or after it lands."""

    def __init__(self, client: AwsCaller, fatal: int, *, lands: bool) -> None:
        self._client = client
        self._left = fatal
        self._lands = lands

    async def call(
        self, operation: str, payload: Mapping[str, object], *, attempts_max: int = ATTEMPTS_MAX
    ) -> AwsReply:
        if operation in WRITES:
            self._left -= 1
            if self._left == 0 and not self._lands:
                raise Killed
        reply = await self._client.call(operation, payload, attempts_max=attempts_max)
        if operation in WRITES and self._left == 0:
            raise Killed
        return reply


def narrowed(settings: KeySettings) -> KeySettings:
    """Settings whose rows, state and name are others."""
    return replace(
        settings, label="renamed", disabled=True, limits_nano_usd={"day": 5}, labels={"team": "a"}
    )


def tightened(settings: LevelSettings) -> LevelSettings:
    """Settings whose state is another, too."""
    return replace(settings, limits_nano_usd={"day": 5, "month": 50}, concurrency=3)


TEAM = LevelSettings(limits_nano_usd={"day": 9}, display_name="Search")
BUDGET = WorkspaceSettings(budget_nano_usd=10**9, admission="covered")
CHANGES: dict[str, Step] = {
    "key.create": lambda stores, _: stores.keys.create(
        NewKey(workspace_id=WORKSPACE, label="new", role="read"), by=TESTER
    ),
    "key.change": lambda stores, key: stores.keys.change(WORKSPACE, key, narrowed, by=TESTER),
    "key.rotate": lambda stores, key: stores.keys.rotate(WORKSPACE, key, grace_s=60, by=TESTER),
    "key.delete": lambda stores, key: stores.keys.delete(WORKSPACE, key, by=TESTER),
    "team.create": lambda stores, _: stores.teams.create(WORKSPACE, "new", TEAM, by=TESTER),
    "team.change": lambda stores, _: stores.teams.change(WORKSPACE, "search", tightened, by=TESTER),
    "member.create": lambda stores, _: stores.members.create(
        WORKSPACE, "new", MemberSettings(concurrency=2, team_id="search"), by=TESTER
    ),
    "credit.grant": lambda stores, _: stores.credits.grant(
        WORKSPACE, "invoice", 10**9, "paid", by=TESTER
    ),
    "credit.credit_line": lambda stores, _: stores.credits.set_credit_limit(
        WORKSPACE, 10**9, by=TESTER
    ),
    "workspace.create": lambda stores, _: stores.workspaces.create("new", BUDGET, by=TESTER),
    "workspace.change": lambda stores, _: stores.workspaces.change(
        WORKSPACE, lambda _: BUDGET, by=TESTER
    ),
    "workspace.lock": lambda stores, _: stores.workspaces.set_locked(
        WORKSPACE, locked=True, by=TESTER
    ),
    "workspace.grow": lambda stores, _: stores.workspaces.grow(WORKSPACE),
}


async def find_violations(
    endpoint_url: str, parts: Collection[str] = (*CHANGES, RACE)
) -> AsyncGenerator[str, None]:
    """Yield what goes wrong in each part, in words."""
    client = aws_client(endpoint_url, timeout_s=10.0)
    try:
        for action in CHANGES:
            for lands in (False, True) if action in parts else ():
                async for violation in _crash_at_each_write(client, action, lands=lands):
                    yield violation
        for violation in await _race(client) if RACE in parts else ():
            yield violation
    finally:
        await client.close()


async def _crash_at_each_write(
    client: AwsCaller, action: str, *, lands: bool
) -> AsyncGenerator[str, None]:
    for fatal in count(1):
        place = f"{action}, killed {'after' if lands else 'before'} write {fatal}"
        found, ended = await _crash(client, action, CHANGES[action], (fatal, lands))
        for what in found:
            yield f"{place}: {what}"
        if ended:
            return


async def _crash(
    client: AwsCaller, action: str, change: Step, fatal: tuple[int, bool]
) -> tuple[list[str], bool]:
    clock = HandClock()
    tables = await fresh_tables(client)
    stores = dynamo_stores(client, tables, clock)
    await stores.workspaces.create(WORKSPACE, WorkspaceSettings(), by=TESTER)
    key = await stores.keys.create(NewKey(workspace_id=WORKSPACE, label="old"), by=TESTER)
    await stores.teams.create(WORKSPACE, "search", TEAM, by=TESTER)
    dying = dynamo_stores(Crashing(client, fatal[0], lands=fatal[1]), tables, clock)
    ended = False
    try:
        await change(dying, key.summary.id)
        ended = True
    except Killed:
        pass
    found = await _compare(client, tables, clock, key.secret)
    clock.now += 1
    try:
        await change(stores, key.summary.id)
    except GatewayError as refusal:
        # A name that is taken by now: that of the key that was made.
        if action != "key.create":
            found.append(f"the repeated change is refused: {refusal}")
    found += await _compare(client, tables, clock, key.secret)
    made = Counter(entry.action for entry in await _entries(stores))
    expected = 1 + (action in ("key.create", "workspace.create", "team.create"))
    repeats = action in _REPEATABLE
    if made[action] != expected and not (repeats and made[action] == expected + 1):
        found.append(f"{made[action]} entries of {action}")
    return found, ended


async def _race(client: AwsCaller) -> list[str]:
    """Processes that change one key at the same moment."""
    clock = HandClock()
    tables = await fresh_tables(client)
    stores = dynamo_stores(client, tables, clock)
    await stores.workspaces.create(WORKSPACE, WorkspaceSettings(), by=TESTER)
    key = await stores.keys.create(NewKey(workspace_id=WORKSPACE, label="old"), by=TESTER)

    async def change(number: int) -> None:
        racer = dynamo_stores(client, tables, clock)
        for step in range(3):
            clock.now += 0.001
            with_limit = {"day": 10 + number, "month": 100 * step + number + 1}
            try:
                await racer.keys.change(
                    WORKSPACE,
                    key.summary.id,
                    lambda old, limits=with_limit: replace(  # type: ignore[misc]
                        old, limits_nano_usd=limits, burst=old.burst + 1
                    ),
                    by=TESTER,
                )
            except (GatewayError, StoreError):
                # Too many others came first; nothing was changed.
                continue

    await asyncio.gather(*(change(number) for number in range(RACERS)))
    found = await _compare(client, tables, clock, key.secret)
    changes = sum(entry.action == "key.change" for entry in await _entries(stores))
    summary = await stores.keys.get(WORKSPACE, key.summary.id)
    if summary is None or summary.burst != KeySettings(label="").burst + changes:
        found.append(f"{changes} entries, but the burst is {summary and summary.burst}")
    return [f"race: {what}" for what in found]


async def _compare(client: AwsCaller, tables: Tables, clock: HandClock, secret: str) -> list[str]:
    """Where the entries, applied in order, differ from what the stores show."""
    # Authentication of a process that has nothing cached.
    stores = dynamo_stores(client, tables, clock)
    ids = IdSource(clock)
    budgets = Budgets(client, tables, stores.workspaces, (), ids=ids, clock=clock)
    await WorkspaceMaintenance(
        client,
        tables,
        wallets=stores.wallets,
        workspaces=stores.workspaces,
        budgets=budgets,
        lots=CreditLots(client, tables, stores.wallets, ids=ids, clock=clock),
        key_writes=KeyWrites(client, tables, ids=ids, clock=clock),
        levels=PendingLevels(client, tables, ids=ids, clock=clock),
        slices=LevelSlices(client, tables, ids=ids, clock=clock),
        ids=ids,
        clock=clock,
    ).run()
    entries = await _entries(stores)
    chains: dict[str, list[AuditEntry]] = {}
    for entry in entries:
        chains.setdefault(f"{entry.action.partition('.')[0]} {entry.target}", []).append(entry)
    shown = await _shown(stores)
    uncounted = [
        team.id
        for team in (await stores.teams.list(WORKSPACE)).found
        # Nothing is spent: what is left is the limit.
        if team.spending.remaining_nano_usd != team.limits_nano_usd
    ]
    found = [f"the state of team {team_id} lacks its limits" for team_id in uncounted]
    found += [f"{target} has no entry" for target in shown if target not in chains]
    for target, chain in chains.items():
        found += _follow(target, chain, shown.get(target, {}))
    deleted = any(entry.action == "key.delete" for entry in entries)
    disabled = any(entry.after.get("disabled") == "true" for entry in entries)
    try:
        await stores.keys.authenticate(secret)
        refused = False
    except AccessError:
        refused = True
    # A second rotation ends the grace of the first secret.
    replaced = sum(entry.action == "key.rotate" for entry in entries) > 1
    if refused != (deleted or disabled or replaced):
        found.append(f"the key is refused: {refused}, deleted: {deleted}, disabled: {disabled}")
    return found


def _follow(target: str, chain: list[AuditEntry], shown: dict[str, str]) -> list[str]:
    """Whether the changes of each field lead from value to value, and to the one that is shown."""
    if any(entry.action == "key.delete" for entry in chain):
        return []
    found = []
    names = {name for entry in chain for name in (*entry.before, *entry.after)}
    for name in sorted(names - UNSHOWN):
        # A change takes one value away and gives another: all but the first and last cancel out.
        values = Counter[str | None]()
        for entry in chain:
            if name in entry.before or name in entry.after:
                values[entry.after.get(name)] += 1
                values[entry.before.get(name)] -= 1
        start = STARTS.get(name)
        if name == "secret":
            start = next(entry.before[name] for entry in chain if name in entry.before)
        expected = Counter({shown.get(name): 1})
        expected[start] -= 1
        if {it: n for it, n in values.items() if n} != {it: n for it, n in expected.items() if n}:
            found.append(f"{target}: {name} is {shown.get(name)}, its entries say {values}")
    return found


async def _shown(stores: DynamoStores) -> dict[str, dict[str, str]]:
    shown: dict[str, dict[str, str]] = {}
    for workspace in (await stores.workspaces.list()).found:
        fields = describe(workspace.settings) | describe(lock_change(lock_of(workspace)))
        if workspace.shards > 1:
            fields["shards"] = str(workspace.shards)
        shown[f"workspace {workspace.id}"] = fields
        for key in (await stores.keys.list(workspace.id)).found:
            shown[f"key {key.id}"] = {
                **describe(settings_of(key)),
                "secret": f"…{key.last_four}",
            }
        for team in (await stores.teams.list(workspace.id)).found:
            shown[f"team {team.id}"] = _settings(team, LevelSettings)
        for member in (await stores.members.list(workspace.id)).found:
            shown[f"member {member.id}"] = _settings(member, MemberSettings)
        for entry in (await stores.credits.entries(workspace.id)).found:
            shown[f"credit {entry.id}"] = describe(change_of(entry))
    return shown


def _settings(level: LevelSettings, kind: type[LevelSettings]) -> dict[str, str]:
    return describe(kind(**{it.name: getattr(level, it.name) for it in fields(kind)}))


async def _entries(stores: DynamoStores) -> list[AuditEntry]:
    now_s = int(stores.clock.now_s())
    wanted = AuditFilter(since_s=now_s - 60, until_s=now_s + 60)
    page = await stores.audit_log.page(None, wanted, limit=1000)
    return list(page.found)[::-1]


async def main(endpoint_url: str, *parts: str) -> None:
    """Print the first violation."""
    async with aclosing(find_violations(endpoint_url, parts or (*CHANGES, RACE))) as found:
        async for violation in found:
            print("VIOLATION", violation)
            return


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
