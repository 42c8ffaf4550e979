"""Sessions of members in DynamoDB: secrets that refer to the member's session key.

A session's item has the hash of the session key's own secret, which nobody knows. Settings are not
copied into sessions, so a change of the key, the workspace, the member or the team applies to all
sessions.
"""

from typing import Final

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreUnavailable, TransactionCancelled, refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.records.audit import Actor
from tollgate.stores.aws.decoding import read_optional_text, read_text
from tollgate.stores.aws.expressions import LEVEL_THERE, MEMBER_SESSION_KEY, SESSION_THERE
from tollgate.stores.aws.items import KeyPointerItem, MemberItem, SessionItem
from tollgate.stores.aws.tables import (
    Tables,
    get_item,
    key_pointer_key,
    level_row_key,
    secret_key,
    try_update,
)
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.keys.administration import DynamoKeyStore
from tollgate.stores.keys.lookup import DynamoKeyDirectory
from tollgate.stores.keys.rows import is_deleting
from tollgate.stores.keys.secret import is_well_formed, new_secret, secret_hash
from tollgate.stores.people.level_items import is_tombstone
from tollgate.stores.people.levels import LEVEL_ROUNDS_MAX
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.people import SESSION_KEY_PREFIX, SESSION_S_MAX, OpenedSession
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.rules.audit_entries import AuditedChange, SessionChange
from tollgate.stores.rules.key_names import choose_free_name
from tollgate.stores.rules.level_settings import is_member_id

# The number is high because an agent sends several requests at the same time; a member's own rate
# limit may be lower.
_RATE: Final = 600
_BURST: Final = 600


class DynamoSessionStore:
    """Implements `stores.ports.people.SessionStore`; drops closed sessions from `directory`."""

    def __init__(
        self,
        keys: DynamoKeyStore,
        directory: DynamoKeyDirectory,
        client: AwsCaller,
        tables: Tables,
        *,
        ids: IdSource,
        clock: Clock,
        prefix: str,
    ) -> None:
        self._keys = keys
        self._directory = directory
        self._client = client
        self._tables = tables
        self._ids = ids
        self._clock = clock
        self._prefix = prefix
        self._entries = AuditWriter(tables.core, ids=ids, clock=clock)

    async def open(
        self, workspace_id: str, member_id: str, *, lifetime_s: int, by: Actor
    ) -> OpenedSession | None:
        if lifetime_s < 1:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, "lifetime_s must be more than 0.", param="lifetime_s"
            )
        if not is_member_id(member_id):
            return None
        secret = new_secret(self._prefix, self._ids.random_bytes)
        expires_s = int(self._clock.now_s()) + min(lifetime_s, SESSION_S_MAX)
        with refusing_when_unavailable():
            for _ in range(LEVEL_ROUNDS_MAX):
                key = level_row_key("member", workspace_id, member_id)
                member = await get_item(self._client, self._tables.core, key)
                if member is None or is_tombstone(member):
                    return None
                pointer = await self._session_key(workspace_id, member_id, member, by)
                if pointer is None:
                    continue
                row: Item = {
                    **secret_key(secret_hash(secret)),
                    SessionItem.KEY_HASH: pointer[KeyPointerItem.HASH],
                    SessionItem.WORKSPACE: string(workspace_id),
                    SessionItem.MEMBER: string(member_id),
                    SessionItem.EXPIRES: number(expires_s),
                    SessionItem.DELETE_AT: number(expires_s),
                }
                check = {
                    "TableName": self._tables.core,
                    "Key": key,
                    "ConditionExpression": LEVEL_THERE,
                }
                entry = self._entry(
                    by, "session.open", workspace_id, member_id, expires_s=expires_s
                )
                actions = [{"ConditionCheck": check}, put_if_absent(self._tables.core, row), *entry]
                try:
                    await transact(self._client, self._ids, actions)
                except TransactionCancelled:
                    continue
                return OpenedSession(
                    secret=secret,
                    expires_s=expires_s,
                    key_id=read_text(pointer, KeyPointerItem.KEY),
                )
            raise StoreUnavailable(f"member {member_id} keeps changing", maybe_applied=False)

    async def close(self, secret: str, *, by: Actor) -> bool:
        if not is_well_formed(secret, self._prefix):
            return False
        digest = secret_hash(secret)
        with refusing_when_unavailable():
            row = await get_item(self._client, self._tables.core, secret_key(digest))
            if row is None or SessionItem.KEY_HASH not in row:
                return False
            delete = {
                "TableName": self._tables.core,
                "Key": secret_key(digest),
                "ConditionExpression": SESSION_THERE,
            }
            workspace_id = read_text(row, SessionItem.WORKSPACE)
            member_id = read_text(row, SessionItem.MEMBER)
            entry = self._entry(by, "session.close", workspace_id, member_id)
            try:
                await transact(self._client, self._ids, [{"Delete": delete}, *entry])
            except TransactionCancelled:
                return False
        self._directory.forget(digest)
        return True

    async def _session_key(
        self, workspace_id: str, member_id: str, member: Item, by: Actor
    ) -> Item | None:
        """Return the pointer of the member's session key, which is created if there is none.

        Return None if another process has created a session key in the meantime.
        """
        key_id_before = read_optional_text(member, MemberItem.SESSION_KEY)
        if key_id_before is not None:
            pointer = await self._pointer(workspace_id, key_id_before)
            if pointer is not None and not is_deleting(pointer):
                return pointer
        names = await self._keys.names(workspace_id)
        created = await self._keys.create(
            NewKey(
                workspace_id=workspace_id,
                label=choose_free_name(names, f"{SESSION_KEY_PREFIX}{member_id}"),
                member_id=member_id,
                requests_per_minute=_RATE,
                burst=_BURST,
            ),
            by=by,
        )
        key_id = created.summary.id
        values = {":kid": string(key_id), ":was": string(key_id_before or "")}
        member_key = level_row_key("member", workspace_id, member_id)
        write = MEMBER_SESSION_KEY.build(self._tables.core, member_key, values)
        if not await try_update(self._client, write):
            await self._keys.delete(workspace_id, key_id, by=by)
            return None
        return await self._pointer(workspace_id, key_id)

    async def _pointer(self, workspace_id: str, key_id: str) -> Item | None:
        key = key_pointer_key(workspace_id, key_id)
        return await get_item(self._client, self._tables.core, key)

    def _entry(
        self,
        by: Actor,
        action: str,
        workspace_id: str,
        member_id: str,
        *,
        expires_s: int | None = None,
    ) -> list[object]:
        change = AuditedChange(
            action=action,
            target=member_id,
            workspace_id=workspace_id,
            after=None if expires_s is None else SessionChange(expires_s=expires_s),
        )
        return self._entries.puts(change, by)
