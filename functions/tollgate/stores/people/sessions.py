"""Sessions of members in DynamoDB: secrets that refer to a sign-in and to the member's session key.

A secret's item contains the hash of the session key's own secret, which nobody knows. Settings are
not copied into sessions, so a change to the key, the workspace, the member or the team applies to
all sessions. Without its sign-in's item, a secret is refused, so deleting that item ends the
session.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.aws_json import AwsCaller
from tollgate.aws.failures import StoreUnavailable, TransactionCancelled, refusing_when_unavailable
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.pages import Page
from tollgate.core.records.audit import Actor
from tollgate.stores.aws.decoding import (
    decode_items,
    read_optional_text,
    read_text,
)
from tollgate.stores.aws.expressions import (
    IF_PRESENT,
    LEVEL_THERE,
    MEMBER_END_SESSIONS,
    MEMBER_SESSION_KEY,
    SESSION_THERE,
)
from tollgate.stores.aws.items import KeyPointerItem, MemberItem, SessionItem
from tollgate.stores.aws.tables import (
    Tables,
    get_item,
    key_pointer_key,
    level_row_key,
    query_rows,
    secret_key,
    sign_in_key,
    sign_ins_prefix,
    try_update,
    workspace_partition,
)
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.keys.administration import DynamoKeyStore
from tollgate.stores.keys.lookup import DynamoKeyDirectory
from tollgate.stores.keys.rows import is_deleting
from tollgate.stores.keys.secret import is_well_formed, new_secret, secret_hash
from tollgate.stores.people.level_items import is_tombstone, read_member_settings, read_round
from tollgate.stores.people.levels import LEVEL_ROUNDS_MAX
from tollgate.stores.people.sign_ins import (
    id_of_session,
    new_sign_in,
    read_session,
    renewal,
)
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.people import (
    PEOPLE_PAGE_MAX,
    SESSION_KEY_PREFIX,
    SESSION_S_MAX,
    OpenedSession,
    Session,
)
from tollgate.stores.records.audit_log import AuditWriter
from tollgate.stores.rules.audit_entries import AuditedChange, SessionChange
from tollgate.stores.rules.key_names import choose_free_name
from tollgate.stores.rules.level_settings import is_member_id

# The rate is high because an agent sends several requests at the same time; a member's own limit
# may be lower.
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
        self,
        workspace_id: str,
        member_id: str,
        *,
        lifetime_s: int,
        by: Actor,
        renewable_s: int | None = None,
    ) -> OpenedSession | None:
        """Open a session: its sign-in's item, and the item of its first secret."""
        now_s, session_id = int(self._clock.now_s()), self._ids.new_id()
        ends_s = now_s + (renewable_s or min(lifetime_s, SESSION_S_MAX))

        async def sign_in(member: Item) -> Item:
            return new_sign_in(
                sign_in_key(workspace_id, member_id, session_id),
                round_=read_round(member),
                now_s=now_s,
                ends_s=ends_s,
                renewable=renewable_s is not None,
                origin=by.origin,
            )

        def put(row: Item) -> object:
            return put_if_absent(self._tables.core, row)

        return await self._issue(
            workspace_id, member_id, sign_in, put, lifetime_s=lifetime_s, by=by
        )

    async def renew(
        self,
        workspace_id: str,
        member_id: str,
        session_id: str,
        *,
        lifetime_s: int,
        renewable_s: int,
        by: Actor,
    ) -> OpenedSession | None:
        now_s = int(self._clock.now_s())
        key = sign_in_key(workspace_id, member_id, session_id)

        async def sign_in(_: Item) -> Item | None:
            return await get_item(self._client, self._tables.core, key)

        def prolong(_: Item) -> object:
            return renewal(
                self._tables.core, key, now_s=now_s, ends_s=now_s + renewable_s, origin=by.origin
            )

        return await self._issue(
            workspace_id, member_id, sign_in, prolong, lifetime_s=lifetime_s, by=by
        )

    async def _issue(
        self,
        workspace_id: str,
        member_id: str,
        sign_in: Callable[[Item], Awaitable[Item | None]],
        write: Callable[[Item], object],
        *,
        lifetime_s: int,
        by: Actor,
    ) -> OpenedSession | None:
        """Write a new secret together with its sign-in; return None if there is no member or
        sign-in.

        `sign_in` returns the sign-in's item for a member's item, and `write` the action that stores
        it.
        """
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
                if member is None or is_tombstone(member) or read_member_settings(member).disabled:
                    return None
                signed_in = await sign_in(member)
                if signed_in is None or read_round(signed_in) != read_round(member):
                    return None
                pointer = await self._session_key(workspace_id, member_id, member, by)
                if pointer is None:
                    continue
                session_id = id_of_session(signed_in)
                row: Item = {
                    **secret_key(secret_hash(secret)),
                    SessionItem.KEY_HASH: pointer[KeyPointerItem.HASH],
                    SessionItem.WORKSPACE: string(workspace_id),
                    SessionItem.MEMBER: string(member_id),
                    SessionItem.SIGN_IN: string(session_id),
                    SessionItem.ROUND: number(read_round(signed_in)),
                    SessionItem.EXPIRES: number(expires_s),
                    SessionItem.DELETE_AT: number(expires_s),
                }
                check = {
                    "TableName": self._tables.core,
                    "Key": key,
                    "ConditionExpression": LEVEL_THERE,
                }
                after = SessionChange(session_id=session_id, expires_s=expires_s)
                actions = [
                    {"ConditionCheck": check},
                    write(signed_in),
                    put_if_absent(self._tables.core, row),
                    *self._entry(by, "session.open", workspace_id, member_id, after=after),
                ]
                try:
                    await transact(self._client, self._ids, actions)
                except TransactionCancelled:
                    continue
                return OpenedSession(
                    id=session_id,
                    secret=secret,
                    expires_s=expires_s,
                    key_id=read_text(pointer, KeyPointerItem.KEY),
                )
            raise StoreUnavailable(f"member {member_id} keeps changing", maybe_applied=False)

    async def list(
        self,
        workspace_id: str,
        member_id: str,
        *,
        after: str | None = None,
        limit: int = PEOPLE_PAGE_MAX,
    ) -> Page[Session]:
        with refusing_when_unavailable():
            member = await self._member(workspace_id, member_id)
            if member is None:
                return Page(found=(), next=None)
            rows, end = await query_rows(
                self._client,
                self._tables.core,
                workspace_partition(workspace_id),
                sign_ins_prefix(member_id),
                after=None if after is None else sign_in_key(workspace_id, member_id, after),
                limit=limit,
            )
        sessions, unreadable = decode_items(read_session, rows)
        current, now_s = read_round(member), int(self._clock.now_s())
        rounds = {id_of_session(row): read_round(row) for row in rows}
        return Page(
            found=tuple(
                each for each in sessions if rounds[each.id] == current and each.expires_s > now_s
            ),
            next=None if end is None else id_of_session(end),
            unreadable=tuple(unreadable),
        )

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
            session_id = read_optional_text(row, SessionItem.SIGN_IN)
            actions: list[object] = [{"Delete": delete}]
            before = None
            if session_id is not None:
                before = SessionChange(session_id=session_id)
                sign_in = sign_in_key(workspace_id, member_id, session_id)
                actions.append({"Delete": {"TableName": self._tables.core, "Key": sign_in}})
            actions += self._entry(by, "session.close", workspace_id, member_id, before=before)
            try:
                await transact(self._client, self._ids, actions)
            except TransactionCancelled:
                return False
        self._directory.forget(digest)
        return True

    async def end(self, workspace_id: str, member_id: str, session_id: str, *, by: Actor) -> bool:
        with refusing_when_unavailable():
            if await self._member(workspace_id, member_id) is None:
                return False
            delete = {
                "TableName": self._tables.core,
                "Key": sign_in_key(workspace_id, member_id, session_id),
                "ConditionExpression": IF_PRESENT,
            }
            before = SessionChange(session_id=session_id)
            entry = self._entry(by, "session.close", workspace_id, member_id, before=before)
            try:
                await transact(self._client, self._ids, [{"Delete": delete}, *entry])
            except TransactionCancelled:
                return False
        return True

    async def end_all(self, workspace_id: str, member_id: str, *, by: Actor) -> bool:
        with refusing_when_unavailable():
            if await self._member(workspace_id, member_id) is None:
                return False
            key = level_row_key("member", workspace_id, member_id)
            values: Item = {":zero": number(0), ":one": number(1)}
            write = MEMBER_END_SESSIONS.build(self._tables.core, key, values)
            entry = self._entry(by, "session.close_all", workspace_id, member_id)
            try:
                await transact(self._client, self._ids, [{"Update": write}, *entry])
            except TransactionCancelled:
                return False
        return True

    async def _member(self, workspace_id: str, member_id: str) -> Item | None:
        """Return the item of a member; None if there is none or only a tombstone."""
        if not is_member_id(member_id):
            return None
        key = level_row_key("member", workspace_id, member_id)
        member = await get_item(self._client, self._tables.core, key)
        return None if member is None or is_tombstone(member) else member

    async def _session_key(
        self, workspace_id: str, member_id: str, member: Item, by: Actor
    ) -> Item | None:
        """Return the pointer of the member's session key, which is created if necessary.

        Returns None if another process has created a session key in the meantime.
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
        before: SessionChange | None = None,
        after: SessionChange | None = None,
    ) -> Sequence[object]:
        change = AuditedChange(
            action=action,
            target=member_id,
            workspace_id=workspace_id,
            before=before,
            after=after,
        )
        return self._entries.puts(change, by)
