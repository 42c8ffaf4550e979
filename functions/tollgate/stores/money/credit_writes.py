"""Writes a credit entry and changes the balance in one transaction."""

from collections.abc import Mapping
from typing import Final, Literal

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreUnavailable, TransactionCancelled
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor
from tollgate.stores.aws.expressions import WALLET_GRANT, WALLET_TAKE
from tollgate.stores.aws.items import CreditIdItem
from tollgate.stores.aws.tables import Tables, grant_key, wallet_key
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.money.credit_items import change_of, entry_item
from tollgate.stores.ports.credit import CreditEntry
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.rules.audit_entries import AuditedChange

_CONDITION_FAILED: Final = "ConditionalCheckFailed"

# The result of a write. Nothing was written if the id already has an entry (repeated), if a shard
# has too little credit (short), or if another condition failed (changed).
EntryOutcome = Literal["written", "repeated", "short", "changed"]


class CreditWriter:
    """Writes credit entries, each id only once."""

    def __init__(self, client: AwsCaller, tables: Tables, *, ids: IdSource, clock: Clock) -> None:
        self._client = client
        self._tables = tables
        self._ids = ids
        self._audit = AuditWriter(tables.core, ids=ids, clock=clock)

    async def write(
        self, entry: CreditEntry, parts: Mapping[int, int], by: Actor, *other_actions: object
    ) -> EntryOutcome:
        """Write a credit entry, its audit log entry, the amount for each shard and other actions.

        Raises StoreUnavailable if the transaction fails for a reason other than its conditions.
        """
        position = self._ids.new_id()
        once: Item = {
            **grant_key(entry.workspace_id, entry.id),
            CreditIdItem.PLACE: string(position),
        }
        change = AuditedChange(
            action=f"credit.{entry.kind}",
            target=entry.id,
            workspace_id=entry.workspace_id,
            after=change_of(entry),
        )
        actions = (
            # The first put makes the entry unique.
            put_if_absent(self._tables.core, once),
            put_if_absent(self._tables.core, entry_item(entry, position)),
            *self._audit.puts(change, by),
            *other_actions,
            *(self._change(entry.workspace_id, shard, part) for shard, part in parts.items()),
        )
        try:
            await transact(self._client, self._ids, actions)
        except TransactionCancelled as cancelled:
            failed = [reason.code == _CONDITION_FAILED for reason in cancelled.reasons]
            if failed[:1] == [True]:
                return "repeated"
            if any(failed[-len(parts) :]) and not any(part > 0 for part in parts.values()):
                return "short"
            if any(failed[: -len(parts)]):
                return "changed"
            raise StoreUnavailable(str(cancelled), maybe_applied=False) from cancelled
        return "written"

    def _change(self, workspace_id: str, shard: int, part_nano_usd: int) -> object:
        """Return the action that adds an amount to a shard, or deducts a negative one."""
        write = WALLET_GRANT if part_nano_usd > 0 else WALLET_TAKE
        key, values = wallet_key(workspace_id, shard), {":x": number(abs(part_nano_usd))}
        return {"Update": write.build(self._tables.ledger, key, values)}
