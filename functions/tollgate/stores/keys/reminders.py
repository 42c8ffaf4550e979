"""Announces that a key has to be rotated before its secret reaches the maximum age."""

from tollgate.aws.attributes import Item
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import TransactionCancelled
from tollgate.core.clock import Clock
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import SWEEPER
from tollgate.stores.aws.decoding import read_optional_number, read_optional_text, read_text
from tollgate.stores.aws.items import KeyPointerItem
from tollgate.stores.aws.tables import Tables
from tollgate.stores.keys.rows import is_deleting, key_of_pointer, made_s
from tollgate.stores.keys.writes import KeyWrites
from tollgate.stores.ports.people import SESSION_KEY_PREFIX
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.rules.audit_entries import AuditedChange, RotationDue
from tollgate.stores.rules.key_age import age_ends_s, reminded_from_s


class RotationReminders:
    """Writes one audit log entry per secret, which webhooks send as `key.rotation_due`."""

    def __init__(self, client: AwsCaller, tables: Tables, *, ids: IdSource, clock: Clock) -> None:
        self._clock = clock
        self._writes = KeyWrites(client, tables, ids=ids, clock=clock)
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def remind(self, pointer: Item, days: int) -> None:
        """Announce that a key's secret will soon be refused, unless this was announced before.

        `days` is the maximum age set by the workspace. Keys of sessions do not age.
        """
        secret_s, label = made_s(pointer), read_optional_text(pointer, KeyPointerItem.LABEL)
        if (
            self._clock.now_s() < reminded_from_s(secret_s, days)
            or read_optional_number(pointer, KeyPointerItem.REMINDED) == secret_s
            or is_deleting(pointer)
            or (label or "").startswith(SESSION_KEY_PREFIX)
        ):
            return
        change = AuditedChange(
            action="key.rotation_due",
            target=key_of_pointer(pointer),
            workspace_id=read_text(pointer, KeyPointerItem.WORKSPACE),
            target_name=label,
            after=RotationDue(
                secret=f"…{read_text(pointer, KeyPointerItem.LAST)}",
                secret_expires_s=age_ends_s(secret_s, days),
            ),
        )
        try:
            await self._writes.note_reminder(
                pointer, secret_s, *self._entries.puts(change, SWEEPER)
            )
        except TransactionCancelled:
            # The key has changed since it was read, or another sweeper was faster.
            return
