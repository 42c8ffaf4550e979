"""The members of all workspaces, in DynamoDB."""

import hashlib
from collections.abc import Sequence

from typing_extensions import override

from tollgate.aws.attributes import Item, number, string
from tollgate.aws.failures import StoreUnavailable, TransactionCancelled, refusing_when_unavailable
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.records.audit import Actor
from tollgate.stores.aws.decoding import read_text
from tollgate.stores.aws.expressions import MEMBER_LINK, MEMBER_REMOVE, SAME_LEVEL
from tollgate.stores.aws.items import MemberItem, SubjectItem
from tollgate.stores.aws.row_ranges import all_rows
from tollgate.stores.aws.tables import get_item, level_rows_prefix, subject_key
from tollgate.stores.aws.transactions import put_if_absent, transact
from tollgate.stores.people.level_items import (
    id_of_row,
    is_tombstone,
    join_levels,
    read_member_settings,
)
from tollgate.stores.people.levels import LEVEL_ROUNDS_MAX, DynamoLevelStore, LevelKind
from tollgate.stores.people.rows import read_member
from tollgate.stores.ports.people import Member
from tollgate.stores.rules.audit_entries import SubjectChange
from tollgate.stores.rules.level_settings import MemberSettings, is_member_id


class DynamoMemberStore(DynamoLevelStore[MemberSettings, Member]):
    """Implements `stores.ports.people.MemberStore`."""

    _kind = LevelKind(
        level="member",
        is_id=is_member_id,
        id_rule="A member id has 1 to 128 letters, digits, dots, dashes, underscores, plus "
        "and at signs, and begins with a letter or a digit.",
        read=read_member_settings,
        show=read_member,
    )

    async def create(
        self,
        workspace_id: str,
        member_id: str,
        settings: MemberSettings,
        *,
        subject: str | None = None,
        by: Actor,
    ) -> Member | None:
        self._check_id(member_id)
        row = self._key(workspace_id, member_id)
        with refusing_when_unavailable():
            for _ in range(LEVEL_ROUNDS_MAX):
                if await self._row(workspace_id, member_id) is not None:
                    return None
                if subject is not None and await self._found(workspace_id, subject) is not None:
                    return None
                actions = await self._join_team(workspace_id, settings.team_id)
                linked = row
                if subject is not None:
                    linked = {**row, MemberItem.SUBJECT: string(subject)}
                    actions.append(self._put_subject(workspace_id, member_id, subject))
                if await self._put(linked, settings, *actions, by=by):
                    return await self._find(workspace_id, member_id)
            raise StoreUnavailable(f"member {member_id} keeps changing", maybe_applied=False)

    async def find_by_subject(self, workspace_id: str, subject: str) -> Member | None:
        with refusing_when_unavailable():
            member_id = await self._found(workspace_id, subject)
            return None if member_id is None else await self._find(workspace_id, member_id)

    async def link(
        self, workspace_id: str, member_id: str, subject: str, *, by: Actor
    ) -> Member | None:
        with refusing_when_unavailable():
            row = await self._row(workspace_id, member_id)
            if row is None:
                return None
            link = self._update(workspace_id, member_id, MEMBER_LINK, {":sj": string(subject)})
            entry = self._entry(by, "change", row, after=SubjectChange(subject=subject))
            put = self._put_subject(workspace_id, member_id, subject)
            try:
                await transact(self._client, self._ids, [link, put, *entry])
            except TransactionCancelled:
                return None
            return await self._find(workspace_id, member_id)

    async def remove(self, workspace_id: str, member_id: str, *, by: Actor) -> bool | None:
        """Remove a member, whose item stays as a tombstone."""
        with refusing_when_unavailable():
            for _ in range(LEVEL_ROUNDS_MAX):
                row = await self._row(workspace_id, member_id)
                if row is None:
                    return None
                if is_tombstone(row):
                    return False
                now = {":now": number(int(self._clock.now_s()))}
                remove = self._update(workspace_id, member_id, MEMBER_REMOVE, now)
                actions = [remove, *self._entry(by, "remove", row)]
                if read_member_settings(row).is_active_owner:
                    actions.append(
                        await self._keep_owner(workspace_id, member_id, param="member_id")
                    )
                try:
                    await transact(self._client, self._ids, actions)
                except TransactionCancelled:
                    continue
                return True
            raise StoreUnavailable(f"member {member_id} keeps changing", maybe_applied=False)

    @override
    async def _joins(
        self, workspace_id: str, level_id: str, old: MemberSettings, new: MemberSettings
    ) -> Sequence[object]:
        actions: list[object] = []
        if new.team_id != old.team_id:
            actions += await self._join_team(workspace_id, new.team_id)
        if old.is_active_owner and not new.is_active_owner:
            param = "disabled" if new.disabled else "role"
            actions.append(await self._keep_owner(workspace_id, level_id, param=param))
        return actions

    async def _join_team(self, workspace_id: str, team_id: str | None) -> list[object]:
        return await join_levels(self._client, self._tables.core, workspace_id, team_id=team_id)

    async def _keep_owner(self, workspace_id: str, member_id: str, *, param: str) -> object:
        """Return the transaction action that checks that another owner remains; raise RequestError
        if there is none.

        Without this check, two owners who remove each other at the same time would leave the
        workspace without an owner.
        """
        for row in await all_rows(
            self._client, self._tables.core, f"W#{workspace_id}", level_rows_prefix("member")
        ):
            other = id_of_row(row)
            if other == member_id or is_tombstone(row):
                continue
            if read_member_settings(row).is_active_owner:
                return {
                    "ConditionCheck": {
                        "TableName": self._tables.core,
                        "Key": self._key(workspace_id, other),
                        "ConditionExpression": SAME_LEVEL,
                        "ExpressionAttributeValues": {":rev": row[MemberItem.REVISION]},
                    }
                }
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "A workspace must have an owner.", param=param
        )

    async def _found(self, workspace_id: str, subject: str) -> str | None:
        key = subject_key(workspace_id, _hash(subject))
        row = await get_item(self._client, self._tables.core, key)
        return None if row is None else read_text(row, SubjectItem.MEMBER)

    def _put_subject(self, workspace_id: str, member_id: str, subject: str) -> object:
        row: Item = {
            **subject_key(workspace_id, _hash(subject)),
            SubjectItem.MEMBER: string(member_id),
        }
        return put_if_absent(self._tables.core, row)


def _hash(subject: str) -> str:
    """Return the SHA-256 of a subject, because a subject may be too long for a sort key."""
    return hashlib.sha256(subject.encode()).hexdigest()
