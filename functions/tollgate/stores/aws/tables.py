"""The three tables: keys of their items, shared reads and updates, and creation in local stores."""

import re
from collections.abc import Mapping, Sequence
from typing import Final, assert_never

from msgspec import Struct

from tollgate.aws.attributes import Item, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import ConditionFailed, StoreRejected, StoreUnavailable
from tollgate.core.ids import created_s
from tollgate.core.limits import AboveKey, LimitOwner
from tollgate.core.records.activity import ActivityRow
from tollgate.stores.aws.decoding import read_text
from tollgate.stores.aws.expressions import ROWS_OF_PARTITION
from tollgate.stores.aws.items import AnyItem
from tollgate.stores.rules.periods import day_name

WORKSPACE_NAMES: Final = "WS"
_WORKSPACE_ID: Final = re.compile(r"[a-z0-9](?:[a-z0-9._-]{0,61}[a-z0-9])?")
_COOLDOWN: Final = "C#"
# First letters of keys. `M` is taken: it is the sort key of the workspace itself.
_LEVELS: Final[Mapping[AboveKey, str]] = {"member": "P", "team": "T"}
_SESSION: Final = "A"
_BATCH_KEYS_MAX: Final = 100
_BATCH_ROUNDS_MAX: Final = 5


class Tables(Struct, frozen=True, kw_only=True):
    """The names of the tables in one deployment."""

    core: str
    ledger: str
    generations: str


def secret_key(secret_hash: str) -> Item:
    """Return the key of a secret's item in the core table, by the secret's hash."""
    return _key(f"H#{secret_hash}", "K")


def is_workspace_id(text_: str) -> bool:
    """Return True if a text is a workspace id: a slug, so `#` can separate the parts of keys."""
    return _WORKSPACE_ID.fullmatch(text_) is not None


def workspace_key(workspace_id: str) -> Item:
    """Return the key of a workspace in the core table."""
    return _key(f"W#{workspace_id}", "M")


def workspace_partition(workspace_id: str) -> str:
    """Return the core table's partition that contains a workspace, its keys and its credit."""
    return f"W#{workspace_id}"


def seal_key_key(workspace_id: str) -> Item:
    """Return the core table's key of the item with a workspace's sealing key."""
    return _key(f"E#{workspace_id}", "KEY")


def key_pointer_key(workspace_id: str, key_id: str) -> Item:
    """Return the key of an API key's pointer in the core table, in its workspace's partition."""
    return _key(f"W#{workspace_id}", f"K#{key_id}")


def key_name_key(workspace_id: str, label: str) -> Item:
    """Return the key of the core table's item that makes an API key's name unique."""
    return _key(f"W#{workspace_id}", f"N#{label}")


def grant_key(workspace_id: str, entry_id: str) -> Item:
    """Return the key of the core table's item that makes a credit entry's id unique."""
    return _key(f"W#{workspace_id}", f"G#{entry_id}")


def entry_key(workspace_id: str, place: str) -> Item:
    """Return the key of a credit entry in the core table; entries sort by time."""
    return _key(f"W#{workspace_id}", f"L#{place}")


def credit_lots_key(workspace_id: str) -> Item:
    """Return the key of a workspace's lots of expiring credit in the core table."""
    return _key(f"W#{workspace_id}", "LOTS")


def workspace_name_key(workspace_id: str) -> Item:
    """Return the key of a workspace in the core table's list of all workspaces."""
    return _key(WORKSPACE_NAMES, f"W#{workspace_id}")


def alert_key(workspace_id: str, month: str, budget_nano_usd: int, percent: int) -> Item:
    """Return the key of a budget alert in the core table, which makes the alert unique."""
    return _key(f"W#{workspace_id}", f"E#{month}#{budget_nano_usd}#{percent:03d}")


def activity_key(workspace_id: str, row: ActivityRow) -> Item:
    """Return the key of a closed day's activity row in the core table."""
    return _key(f"W#{workspace_id}", f"A#{row.place}")


def closed_day_key(workspace_id: str, day: str) -> Item:
    """Return the key of the core table's item that marks a day (`2026-11-21`) as complete."""
    return _key(f"W#{workspace_id}", f"D#{day.replace('-', '')}")


def audit_workspace(workspace_id: str) -> str:
    """Return the core table's partition of one workspace's audit log."""
    return f"T#W#{workspace_id}"


def audit_month(second: int) -> str:
    """Return the core table's partition of all audit log entries in a UTC month."""
    return f"T#M#{day_name(second)[:6]}"


def audit_key(partition: str, entry_id: str) -> Item:
    """Return the key of an audit log entry in the core table; entries sort by time."""
    return _key(partition, entry_id)


def audit_seals(workspace_id: str | None) -> str:
    """Return the core table's partition of the seals of a workspace's log, or of the whole log."""
    return "T#S#M" if workspace_id is None else f"T#S#W#{workspace_id}"


def audit_seal_key(workspace_id: str | None, day: str) -> Item:
    """Return the key of the seal of a day in the core table; seals sort by day."""
    return _key(audit_seals(workspace_id), f"D#{day}")


def claim_key(workspace_id: str, key_hash: str) -> Item:
    """Return the key of an Idempotency-Key's claim in the core table."""
    return _key(f"I#{workspace_id}", key_hash)


def deleted_response_key(workspace_id: str, generation_id: str) -> Item:
    """Return the key of the core table's item that marks a response as being deleted."""
    return _key(f"X#{workspace_id}", generation_id)


def standing_key(workspace_id: str, place: str) -> Item:
    """Return the key of a legal hold or an erasure in the core table."""
    return _key(f"Q#{workspace_id}", place)


def login_code_key(kind: str, digest: str) -> Item:
    """Return the key of a sign-in step in the core table, by the hash of its code."""
    return _key(f"O#{digest}", kind)


def login_count_key(digest: str) -> Item:
    """Return the key of the core table's item that counts an address's calls in a time window."""
    return _key(f"O#{digest}", "count")


def file_partition(workspace_id: str) -> str:
    """Return the core table's partition of a workspace's files."""
    return f"F#{workspace_id}"


def file_key(workspace_id: str, file_id: str) -> Item:
    """Return the key of a file in the core table; files sort by time."""
    return _key(file_partition(workspace_id), f"F#{file_id}")


def file_usage_key(workspace_id: str, key_id: str | None) -> Item:
    """Return the key of the item that counts an API key's files, or all files of a workspace."""
    return _key(file_partition(workspace_id), "U" if key_id is None else f"U#{key_id}")


def webhook_partition(workspace_id: str) -> str:
    """Return the core table's partition of a workspace's webhooks."""
    return f"J#{workspace_id}"


def webhook_key(workspace_id: str, place: int) -> Item:
    """Return the key of a numbered webhook slot of a workspace in the core table."""
    return _key(webhook_partition(workspace_id), f"E#{place}")


def delivery_key(workspace_id: str, webhook_id: str, event_id: str, *, pending: bool) -> Item:
    """Return the key of an event's delivery in the core table; deliveries sort by time.

    Pending deliveries have a different key prefix, so that a round can read only these.
    """
    kind = "P" if pending else "D"
    return _key(webhook_partition(workspace_id), f"{kind}#{webhook_id}#{event_id}")


def wallet_key(workspace_id: str, shard: int) -> Item:
    """Return the key of one shard of a workspace's money in the ledger table."""
    return _key(f"W#{workspace_id}#{shard}", "B")


def key_state_key(key_id: str) -> Item:
    """Return the key of an API key's state in the ledger table."""
    return _key(f"K#{key_id}", "S")


def level_state_key(level: AboveKey, workspace_id: str, level_id: str, slice_: int = 0) -> Item:
    """Return the ledger table's key of a slice of a member's or team's state."""
    name = f"{level_id}#{slice_}" if slice_ else level_id
    return _key(f"{_LEVELS[level]}#{workspace_id}#{name}", "S")


def state_key(owner: LimitOwner) -> Item:
    """Return the ledger table's key for the state of an API key, a level above it, or a session."""
    match owner.level:
        case "key":
            return key_state_key(owner.id)
        case "member" | "team" as level:
            return level_state_key(level, owner.workspace_id, owner.id, owner.slice)
        case "session":
            return _key(f"{_SESSION}#{owner.id}", "S")
        case "workspace":
            raise ValueError("a workspace has wallet shards and no state")
        case _:
            assert_never(owner.level)


def owner_of_state(partition: str, workspace_id: str) -> LimitOwner:
    """Return the owner of the state in a ledger partition; raise ValueError without a state."""
    kind, _, name = partition.partition("#")
    if kind == "K":
        return LimitOwner(level="key", id=name, workspace_id=workspace_id)
    if kind == _SESSION:
        return LimitOwner(level="session", id=name, workspace_id=workspace_id)
    for level, initial in _LEVELS.items():
        if kind == initial:
            level_id, _, slice_number = name.removeprefix(f"{workspace_id}#").partition("#")
            return LimitOwner(
                level=level, id=level_id, workspace_id=workspace_id, slice=int(slice_number or 0)
            )
    raise ValueError(f"partition {partition} has no state")


def level_row_key(level: AboveKey, workspace_id: str, level_id: str) -> Item:
    """Return the key of a member or a team in the core table, in its workspace's partition."""
    return _key(f"W#{workspace_id}", f"{_LEVELS[level]}#{level_id}")


def level_rows_prefix(level: AboveKey) -> str:
    """Return the sort key prefix of a workspace's members or teams."""
    return f"{_LEVELS[level]}#"


def sign_in_key(workspace_id: str, member_id: str, session_id: str) -> Item:
    """Return the key of a member's session in the core table; sessions sort by time."""
    return _key(f"W#{workspace_id}", f"{sign_ins_prefix(member_id)}{session_id}")


def sign_ins_prefix(member_id: str) -> str:
    """Return the sort key prefix of a member's sessions."""
    return f"S#{member_id}#"


def subject_key(workspace_id: str, subject_hash: str) -> Item:
    """Return the key of the core table's item that maps a signed-in identity to a member."""
    return _key(f"W#{workspace_id}", f"O#{subject_hash}")


def generation_key(workspace_id: str, generation_id: str) -> Item:
    """Return the key of a generation's record, in the partition of the UTC day of the id."""
    day = day_name(created_s(generation_id))
    return _key(generation_day(workspace_id, day), generation_sort(generation_id))


def generation_day(workspace_id: str, day: str) -> str:
    """Return the generations table's partition of one UTC day (`2026-11-21`)."""
    return f"W#{workspace_id}#{day.replace('-', '')}"


def generation_sort(generation_id: str) -> str:
    """Return the sort key of a record within its day."""
    return f"G#{generation_id}"


def generation_of_sort(item: Item) -> str:
    """Return the generation id in the sort key of a record's item."""
    return read_text(item, AnyItem.SORT).removeprefix("G#")


# Key of the core table's item that names the live catalog.
PUBLICATION_KEY: Final[Item] = {AnyItem.PARTITION: string("CATALOG"), AnyItem.SORT: string("P")}
# Key of the core table's item with the latest look at a candidate's traffic.
CANARY_LOOK_KEY: Final[Item] = {AnyItem.PARTITION: string("CATALOG"), AnyItem.SORT: string("L")}

# Key of the core table's item that states the version of the stored items.
ITEM_VERSION_KEY: Final[Item] = {AnyItem.PARTITION: string("ITEMS"), AnyItem.SORT: string("V")}


def publication_row_key(revision: int) -> Item:
    """Return the key of one publication in the core table; publications sort by revision."""
    return _key("CATALOG", f"R#{revision:09d}")


def cooldown_key(endpoint_id: str) -> Item:
    """Return the key of an endpoint's failures in the core table."""
    return _key(f"{_COOLDOWN}{endpoint_id}", "S")


def speed_key(endpoint_id: str) -> Item:
    """Return the key of an endpoint's speed in the core table."""
    return _key(f"{_COOLDOWN}{endpoint_id}", "V")


def endpoint_of_cooldown(item: Item) -> str:
    """Return the id of the endpoint in the key of an item of failures or speeds."""
    return read_text(item, AnyItem.PARTITION).removeprefix(_COOLDOWN)


def _key(partition: str, sort: str) -> Item:
    return {AnyItem.PARTITION: string(partition), AnyItem.SORT: string(sort)}


async def create_tables(client: AwsCaller, tables: Tables) -> None:
    """Create missing tables in a local store or a test; in deployments a template creates them."""
    for name in (tables.core, tables.ledger, tables.generations):
        try:
            await client.call(
                "CreateTable",
                {
                    "TableName": name,
                    "BillingMode": "PAY_PER_REQUEST",
                    "KeySchema": [
                        {"AttributeName": AnyItem.PARTITION, "KeyType": "HASH"},
                        {"AttributeName": AnyItem.SORT, "KeyType": "RANGE"},
                    ],
                    "AttributeDefinitions": [
                        {"AttributeName": AnyItem.PARTITION, "AttributeType": "S"},
                        {"AttributeName": AnyItem.SORT, "AttributeType": "S"},
                    ],
                },
            )
        except StoreRejected as rejected:
            if rejected.code != "ResourceInUseException":
                raise


async def try_update(client: AwsCaller, parameters: Mapping[str, object]) -> bool:
    """Update one item; return False if the condition of the update fails."""
    try:
        await client.call("UpdateItem", parameters)
    except ConditionFailed:
        return False
    return True


async def get_item(client: AwsCaller, table: str, key: Item) -> Item | None:
    """Return an item by a consistent read, or None if the item does not exist."""
    reply = await client.call("GetItem", {"TableName": table, "Key": key, "ConsistentRead": True})
    item: Item | None = reply.get("Item")
    return item


async def query_rows(
    client: AwsCaller,
    table: str,
    partition: str,
    prefix: str,
    *,
    after: Item | None = None,
    limit: int | None = None,
    backwards: bool = False,
) -> tuple[list[Item], Item | None]:
    """Return a page of items by prefix of the sort key, and `after` for the next page or None."""
    query: dict[str, object] = {
        "TableName": table,
        "ConsistentRead": True,
        "KeyConditionExpression": ROWS_OF_PARTITION,
        "ExpressionAttributeValues": {":pk": string(partition), ":prefix": string(prefix)},
        "ScanIndexForward": not backwards,
    }
    if after is not None:
        query["ExclusiveStartKey"] = after
    if limit is not None:
        query["Limit"] = limit
    reply = await client.call("Query", query)
    return reply["Items"], reply.get("LastEvaluatedKey")


async def get_items(client: AwsCaller, table: str, keys: Sequence[Item]) -> list[Item]:
    """Return the existing items with these keys, by consistent reads, in any order."""
    items: list[Item] = []
    for start in range(0, len(keys), _BATCH_KEYS_MAX):
        requested: Mapping[str, object] = {
            table: {"Keys": keys[start : start + _BATCH_KEYS_MAX], "ConsistentRead": True}
        }
        for _ in range(_BATCH_ROUNDS_MAX):
            reply = await client.call("BatchGetItem", {"RequestItems": requested})
            items += reply["Responses"].get(table, ())
            requested = reply.get("UnprocessedKeys") or {}
            if not requested:
                break
        else:
            raise StoreUnavailable("BatchGetItem left keys unprocessed", maybe_applied=False)
    return items
