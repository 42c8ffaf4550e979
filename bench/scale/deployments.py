"""Deployments of any size: copies of one workspace that the gateway's own code wrote."""

import json
import tempfile
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace
from tests.contract.test_workspaces import maintenance
from tests.ministack import running_ministack
from tests.stores import (
    NOON_S,
    TESTER,
    DynamoStores,
    HandClock,
    aws_client,
    dynamo_stores,
    fresh_tables,
    record_of,
)

from bench.scale.rows import JoinedRows, Rows, RowsInMemory
from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import AwsCaller
from tollgate.core.clock import DAY_S
from tollgate.core.ids import encode_id
from tollgate.core.records.activity import day_of
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.usage import Usage
from tollgate.stores.aws.items import AnyItem
from tollgate.stores.aws.tables import Tables
from tollgate.stores.keys.secret import secret_hash
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings

WORKSPACE = "acme"
KEY = "key-00000"
TODAY_S = int(NOON_S) // DAY_S * DAY_S
# 13:30 on the day after, when all days before are closed.
NOW_S = TODAY_S + DAY_S + 48_600.0
_CREDIT_NANO_USD = 10**15
_TIMEOUT_S = 60.0
# Prefixes of the items that exist once for each key, member and team.
_OF_A_KEY = ("H#", "K#", "N#", "P#", "T#team")
_Texts = Sequence[tuple[str, str]]
Places = dict[tuple[str, str], Rows]


class Template(Struct, frozen=True, kw_only=True):
    """The items of one workspace with one key, member and team, by table."""

    tables: Tables
    items: Mapping[str, Sequence[Item]]
    key_id: str
    secret: str
    record: GenerationRecord


async def write_template(client: AwsCaller, clock: HandClock) -> Template:
    """Create a workspace with everything in it, serve one generation, and close its day."""
    tables = await fresh_tables(client)
    stores = dynamo_stores(client, tables, clock)
    await stores.credits.grant(WORKSPACE, "first", _CREDIT_NANO_USD, "scale", by=TESTER)
    await stores.teams.create(WORKSPACE, "team-00000", LevelSettings(), by=TESTER)
    member = MemberSettings(team_id="team-00000")
    await stores.members.create(WORKSPACE, "member-00000", member, by=TESTER)
    new = NewKey(workspace_id=WORKSPACE, label=KEY, member_id="member-00000")
    created = await stores.keys.create(new, by=TESTER)
    principal = await stores.keys.authenticate(created.secret)
    hold = await stores.ledger.hold(principal, 10_000)
    record = replace(
        record_of(hold, 7_000),
        model="openai/gpt-5-mini",
        provider="openai",
        key_label=KEY,
        labels={"team": "team-00000", "member": "member-00000"},
        usage=Usage(uncached_input_tokens=1200, output_tokens=512),
    )
    await stores.ledger.settle(hold, record)
    clock.now = NOW_S
    await stores.activity.close_due()
    await maintenance(stores).run()
    items = {
        table: (await client.call("Scan", {"TableName": table}))["Items"]
        for table in (tables.core, tables.ledger, tables.generations)
    }
    return Template(
        tables=tables,
        items=items,
        key_id=principal.key_id,
        secret=created.secret,
        record=record,
    )


async def make_template() -> Template:
    """Return a template written through ministack."""
    with tempfile.TemporaryDirectory() as folder, running_ministack(Path(folder)) as url:
        clock = HandClock()
        client = aws_client(url, clock=clock, timeout_s=_TIMEOUT_S)
        try:
            return await write_template(client, clock)
        finally:
            await client.close()


def stores_on(client: AwsCaller, template: Template) -> DynamoStores:
    """Return the gateway's stores on a deployment."""
    return dynamo_stores(client, template.tables, HandClock(NOW_S))


def copy_template(template: Template, *, workspaces: int = 1, keys: int = 1) -> Places:
    """Return the items of `workspaces` workspaces with `keys` keys each.

    Each key has its own member and team, and was used on each closed day of the month.
    """
    items: defaultdict[tuple[str, str], list[Item]] = defaultdict(list)
    for table, found in template.items.items():
        for item in found:
            if table == template.tables.generations or _sort(item).startswith("A#"):
                continue
            content = json.dumps(item)
            copies = keys if _is_of_a_key(item) else 1
            for workspace in range(workspaces):
                for key in range(copies):
                    copy = _renamed(content, _names(template, workspace, key))
                    items[table, copy[AnyItem.PARTITION]["S"]].append(copy)
    rows: Places = {place: RowsInMemory(each) for place, each in items.items()}
    for workspace in range(workspaces):
        place = template.tables.core, f"W#{workspace_name(workspace)}"
        activity = ActivityRows(template, workspace=workspace, keys=keys)
        rows[place] = JoinedRows([activity, rows[place]])
    return rows


def workspace_name(workspace: int) -> str:
    """Return the id of a copy of the workspace."""
    return f"{WORKSPACE}{workspace:05d}"


def _is_of_a_key(item: Item) -> bool:
    partition = item[AnyItem.PARTITION]["S"]
    return partition.startswith(("H#", "K#")) or _sort(item).startswith(_OF_A_KEY)


def _sort(item: Item) -> str:
    return item[AnyItem.SORT]["S"]


def _names(template: Template, workspace: int, key: int) -> _Texts:
    """Return the texts to replace in a copy; only the first copy keeps the template's secret."""
    key_id = key_name(workspace, key)
    texts = [
        (template.key_id, key_id),
        (KEY, f"key-{key:05d}"),
        ("member-00000", f"member-{key:05d}"),
        ("team-00000", f"team-{key:05d}"),
        (f'"{WORKSPACE}"', f'"{workspace_name(workspace)}"'),
        (f"W#{WORKSPACE}", f"W#{workspace_name(workspace)}"),
    ]
    if workspace or key:
        texts.append((secret_hash(template.secret), f"{workspace * 10**6 + key:064x}"))
    return texts


def key_name(workspace: int, key: int) -> str:
    """Return the id of a copy of the key."""
    made_s = TODAY_S + key // 1_000
    return encode_id(made_s.to_bytes(4, "big") + (workspace * 10**6 + key).to_bytes(7, "big"))


def _renamed(content: str, texts: _Texts) -> Any:
    for old, new in texts:
        content = content.replace(old, new)
    return json.loads(content)


class ActivityRows:
    """The activity of each key on each closed day of the month, generated when read."""

    def __init__(self, template: Template, *, workspace: int, keys: int) -> None:
        found = template.items[template.tables.core]
        row = next(item for item in found if _sort(item).startswith("A#"))
        self._content = json.dumps(row)
        self._workspace = workspace
        self._keys = keys
        self._today = day_of(TODAY_S).replace("-", "")
        self._days = int(self._today[-2:])

    def __len__(self) -> int:
        return self._days * self._keys

    def __iter__(self) -> Iterator[Item]:
        return map(self.item, range(len(self)))

    def sort_key(self, place: int) -> str:
        """Return the sort key of an item."""
        day, key = divmod(place, self._keys)
        name = key_name(self._workspace, key)
        return f"A#{self._today[:-2]}{day + 1:02d}#openai/gpt-5-mini#openai#{name}"

    def item(self, place: int) -> Item:
        """Return an item."""
        names = [
            (f"W#{WORKSPACE}", f"W#{workspace_name(self._workspace)}"),
            (KEY, f"key-{place % self._keys:05d}"),
        ]
        return {**_renamed(self._content, names), AnyItem.SORT: {"S": self.sort_key(place)}}
