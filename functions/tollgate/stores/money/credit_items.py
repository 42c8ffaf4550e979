"""Encodes credit entries and lots of expiring credit as items in the core table."""

from typing import cast

from msgspec import json

from tollgate.aws.attributes import Item, number, string
from tollgate.core.money.statement import UsageGroup
from tollgate.stores.aws.decoding import (
    read_number,
    read_optional_number,
    read_optional_text,
    read_text,
    reads_an_item,
)
from tollgate.stores.aws.items import CreditEntryItem, CreditLotsItem
from tollgate.stores.aws.tables import credit_lots_key, entry_key
from tollgate.stores.ports.credit import CreditEntry, EntryKind
from tollgate.stores.rules.audit_entries import CreditChange
from tollgate.stores.rules.credit_lots import Lot, Lots


def change_of(entry: CreditEntry) -> CreditChange:
    """Return an entry in the form in which the audit log shows it."""
    generation = entry.generation_id and f"gen-{entry.generation_id}"
    return CreditChange(
        amount_nano_usd=entry.amount_nano_usd,
        note=entry.note or None,
        generation_id=generation,
        expires_s=entry.expires_s,
    )


def entry_item(entry: CreditEntry, position: str) -> Item:
    """Return the item for an entry; entries sort by `place`, a time."""
    item: Item = {
        **entry_key(entry.workspace_id, position),
        CreditEntryItem.ID: string(entry.id),
        CreditEntryItem.WORKSPACE: string(entry.workspace_id),
        CreditEntryItem.KIND: string(entry.kind),
        CreditEntryItem.AMOUNT: number(entry.amount_nano_usd),
        CreditEntryItem.NOTE: string(entry.note),
        CreditEntryItem.CREATED: number(entry.created_s),
    }
    if entry.generation_id is not None:
        item[CreditEntryItem.GENERATION] = string(entry.generation_id)
    if entry.expires_s is not None:
        item[CreditEntryItem.EXPIRES] = number(entry.expires_s)
    if entry.refunded is not None:
        item[CreditEntryItem.REFUNDED] = string(json.encode(entry.refunded).decode())
    return item


@reads_an_item
def read_entry(item: Item) -> CreditEntry:
    """Decode an entry."""
    refunded = read_optional_text(item, CreditEntryItem.REFUNDED)
    return CreditEntry(
        id=read_text(item, CreditEntryItem.ID),
        workspace_id=read_text(item, CreditEntryItem.WORKSPACE),
        # Only `entry_item` writes the attribute, so the type is known.
        kind=cast(EntryKind, read_text(item, CreditEntryItem.KIND)),
        amount_nano_usd=read_number(item, CreditEntryItem.AMOUNT),
        note=read_text(item, CreditEntryItem.NOTE),
        created_s=read_number(item, CreditEntryItem.CREATED),
        generation_id=read_optional_text(item, CreditEntryItem.GENERATION),
        expires_s=read_optional_number(item, CreditEntryItem.EXPIRES),
        refunded=None if refunded is None else json.decode(refunded, type=UsageGroup),
    )


def lots_item(workspace_id: str, lots: Lots) -> Item:
    """Return the item that stores a workspace's lots."""
    return {
        **credit_lots_key(workspace_id),
        CreditLotsItem.REVISION: number(lots.revision),
        CreditLotsItem.SPENT: number(lots.spent_nano_usd),
        CreditLotsItem.LOTS: string(json.encode(lots.lots).decode()),
    }


@reads_an_item
def read_lots(item: Item) -> Lots:
    """Decode a workspace's lots."""
    return Lots(
        revision=read_number(item, CreditLotsItem.REVISION),
        spent_nano_usd=read_number(item, CreditLotsItem.SPENT),
        lots=json.decode(read_text(item, CreditLotsItem.LOTS), type=tuple[Lot, ...]),
    )
