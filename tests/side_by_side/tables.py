"""The contents of the three tables and of the folder of objects, as a file and as shapes."""

import base64
import json
import re
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from tests.stores import scan_items
from tollgate.aws.aws_json import AwsCaller
from tollgate.stores.aws import items, record_items

TABLES: Final = ("core", "ledger", "generations")
# The keys of each kind of item, as `table partition|sort`. Kinds of which no store holds any, since
# they live for minutes, are None.
KINDS: Final[Mapping[type, str | None]] = {
    # The list of workspaces, whose items have only keys.
    items.AnyItem: r"core WS\|W#.*",
    items.WalletItem: r"ledger W#.*\|B",
    items.KeyStateItem: r"ledger [KPT]#.*\|S",
    items.SessionStateItem: r"ledger A#.*\|S",
    items.SecretItem: r"core H#.*\|K",
    items.SessionItem: r"core H#.*\|K",
    items.SignInItem: r"core W#.*\|S#.*",
    items.TeamItem: r"core W#.*\|T#.*",
    items.MemberItem: r"core W#.*\|P#.*",
    items.SubjectItem: r"core W#.*\|O#.*",
    items.KeyPointerItem: r"core W#.*\|K#.*",
    items.KeyNameItem: r"core W#.*\|N#.*",
    items.WorkspaceItem: r"core W#.*\|M",
    items.SealKeyItem: r"core E#.*\|KEY",
    items.CreditIdItem: r"core W#.*\|G#.*",
    items.CreditEntryItem: r"core W#.*\|L#.*",
    items.CreditLotsItem: r"core W#.*\|LOTS",
    items.BudgetAlertItem: r"core W#.*\|E#.*",
    items.PublicationItem: r"core CATALOG\|.*",
    items.AuditItem: r"core T#[WM]#.*\|.*",
    items.AuditSealItem: r"core T#S#.*\|D#.*",
    items.WebhookItem: r"core J#.*\|E#.*",
    items.DeliveryItem: r"core J#.*\|[PD]#.*",
    items.ItemVersionItem: r"core ITEMS\|V",
    items.CooldownItem: r"core C#.*\|S",
    items.SpeedItem: r"core C#.*\|V",
    items.AnswerClaimItem: r"core I#.*\|.*",
    items.DeletedResponseItem: r"core X#.*\|.*",
    items.StandingItem: r"core Q#.*\|.*",
    items.LoginCodeItem: None,
    items.LoginCountItem: None,
    record_items.BatchItem: r"core B#.*\|[BR]#.*",
    record_items.JobEventItem: r"core B#.*\|E#.*",
    record_items.OpenBatchItem: r"core BATCHES\|[BR]#.*",
    items.FileItem: r"core F#.*\|F#.*",
    items.FileUsageItem: r"core F#.*\|U.*",
    record_items.ActivityItem: r"core W#.*\|A#.*",
    record_items.ClosedDayItem: r"core W#.*\|D#.*",
    record_items.BillsItem: r"core Y#.*\|B#.*",
    record_items.GenerationItem: r"generations W#.*\|G#.*",
}
Contents = dict[str, Any]


async def dump(client: AwsCaller, names: Mapping[str, str], objects: Path) -> Contents:
    """Return every item, and every object by its path."""
    tables = {table: await scan_items(client, names[table]) for table in TABLES}
    for rows in tables.values():
        rows.sort(key=lambda item: (item["pk"]["S"], item["sk"]["S"]))
    return {"tables": tables, "objects": _objects(objects)}


def _objects(folder: Path) -> dict[str, str]:
    return {
        str(file.relative_to(folder)): base64.b64encode(file.read_bytes()).decode()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }


async def load(
    client: AwsCaller, names: Mapping[str, str], objects: Path, contents: Contents
) -> None:
    """Put dumped items and objects into empty tables and a folder."""
    for table, rows in contents["tables"].items():
        for item in rows:
            await client.call("PutItem", {"TableName": names[table], "Item": item})
    for name, content in contents["objects"].items():
        file = objects / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(base64.b64decode(content))


def shapes(contents: Contents) -> dict[str, set[str]]:
    """Return the paths and types of all attributes by kind of item, with JSON inside of them."""
    found: dict[str, set[str]] = {}
    for table, rows in contents["tables"].items():
        for item in rows:
            key = f"{table} {item['pk']['S']}|{item['sk']['S']}"
            kinds = [
                kind.__name__ for kind, keys in KINDS.items() if keys and re.fullmatch(keys, key)
            ]
            assert kinds, f"no kind of item has the key {key}"
            for name, value in item.items():
                found.setdefault("/".join(kinds), set()).update(_paths(_undated(name), value))
    return found


def _paths(name: str, value: Mapping[str, Any]) -> Iterator[str]:
    ((type_, content),) = value.items()
    yield f"{name} {type_}"
    decoded = None
    if type_ == "S" and content.startswith(("{", "[")):
        decoded = json.loads(content)
    elif name == record_items.GenerationItem.BLOB and type_ == "B":
        decoded = json.loads(zlib.decompress(base64.b64decode(content)))
    yield from _json_paths(name, decoded)


def _json_paths(name: str, value: object) -> Iterator[str]:
    match value:
        case dict():
            for key, inner in value.items():
                yield f"{name}.{_undated(key)}"
                yield from _json_paths(f"{name}.{_undated(key)}", inner)
        case list():
            for inner in value:
                yield from _json_paths(f"{name}[]", inner)


def _undated(name: str) -> str:
    """Return a name without the numbers of days and minutes in it."""
    return re.sub(r"\d{4,}", "0", name)
