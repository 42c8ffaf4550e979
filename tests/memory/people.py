"""Teams, members and sessions in this process's memory; their limits count nothing here."""

from collections.abc import Callable
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from tests.memory.books import MemoryBooks, MemorySession
from tests.memory.keys import MemoryKeyStore
from tollgate.core.clock import Clock
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.ids import IdSource
from tollgate.core.pages import Page
from tollgate.core.records.audit import Actor
from tollgate.stores.keys.secret import new_secret
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.ports.people import (
    PEOPLE_PAGE_MAX,
    SESSION_KEY_PREFIX,
    Belongings,
    Member,
    OpenedSession,
    Session,
    Team,
)
from tollgate.stores.rules.audit_entries import AuditedChange, new_entry
from tollgate.stores.rules.level_settings import LevelSettings, MemberSettings

_Level = TypeVar("_Level", Team, Member)


class _Noted:
    """The base of the stores, which writes their entries of the audit log."""

    def __init__(self, books: MemoryBooks, ids: IdSource, clock: Clock) -> None:
        self._books = books
        self._ids = ids
        self._clock = clock

    def _now_s(self) -> int:
        return int(self._clock.now_s())

    def _note(
        self,
        by: Actor,
        action: str,
        place: tuple[str, str],
        before: Struct | None = None,
        after: Struct | None = None,
    ) -> None:
        change = AuditedChange(
            action=action, target=place[1], workspace_id=place[0], before=before, after=after
        )
        self._books.entries_of_audit.append(new_entry(change, by, ids=self._ids, clock=self._clock))


def _page(
    rows: dict[tuple[str, str], _Level], workspace_id: str, after: str | None, limit: int
) -> Page[_Level]:
    found = [
        row
        for (place, id_), row in sorted(rows.items())
        if place == workspace_id and (after is None or id_ > after)
    ]
    return Page(
        found=tuple(found[:limit]), next=found[limit - 1].id if len(found) > limit else None
    )


def _settings(level: Team | Member) -> dict[str, object]:
    kind = MemberSettings if isinstance(level, Member) else LevelSettings
    return {name: getattr(level, name) for name in kind.__struct_fields__}


class MemoryTeamStore(_Noted):
    """Implements `stores.ports.people.TeamStore`."""

    async def create(
        self, workspace_id: str, team_id: str, settings: LevelSettings, *, by: Actor
    ) -> Team | None:
        """Create a team; None if its id is taken."""
        place = (workspace_id, team_id)
        if place in self._books.teams:
            return None
        self._books.teams[place] = Team(
            **_fields(settings), id=team_id, workspace_id=workspace_id, created_s=self._now_s()
        )
        self._note(by, "team.create", place, after=settings)
        return self._books.teams[place]

    async def get(self, workspace_id: str, team_id: str) -> Team | None:
        """Return a team, deleted or not."""
        return self._books.teams.get((workspace_id, team_id))

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = PEOPLE_PAGE_MAX
    ) -> Page[Team]:
        """Return a page of teams in the order of their ids."""
        return _page(self._books.teams, workspace_id, after, limit)

    async def change(
        self,
        workspace_id: str,
        team_id: str,
        edit: Callable[[LevelSettings], LevelSettings],
        *,
        by: Actor,
    ) -> Team | None:
        """Replace a team's settings by what `edit` returns."""
        place = (workspace_id, team_id)
        team = self._books.teams.get(place)
        if team is None or team.deleted_s is not None:
            return None
        old = LevelSettings(**_settings(team))
        new = edit(old)
        if new != old:
            self._books.teams[place] = replace(team, **_fields(new))
            self._note(by, "team.change", place, old, new)
        return self._books.teams[place]

    async def delete(self, workspace_id: str, team_id: str, *, by: Actor) -> Belongings | None:
        """Delete a team that nothing belongs to."""
        place = (workspace_id, team_id)
        team = self._books.teams.get(place)
        if team is None or team.deleted_s is not None:
            return None
        keys = [
            key
            for key in self._books.keys.values()
            if key.workspace_id == workspace_id and key.settings.team_id == team_id
        ]
        members = [
            it
            for it in self._books.members.values()
            if it.workspace_id == workspace_id and it.team_id == team_id and it.removed_s is None
        ]
        if not keys and not members:
            self._books.teams[place] = replace(team, deleted_s=self._now_s())
            self._note(by, "team.delete", place)
        return Belongings(keys=len(keys), members=len(members))


class MemoryMemberStore(_Noted):
    """Implements `stores.ports.people.MemberStore`."""

    async def create(
        self,
        workspace_id: str,
        member_id: str,
        settings: MemberSettings,
        *,
        subject: str | None = None,
        by: Actor,
    ) -> Member | None:
        """Create a member; None if the id or the subject is taken."""
        place = (workspace_id, member_id)
        if place in self._books.members:
            return None
        if subject is not None and await self.find_by_subject(workspace_id, subject):
            return None
        self._books.check_belonging(workspace_id, team_id=settings.team_id)
        self._books.members[place] = Member(
            **_fields(settings),
            id=member_id,
            workspace_id=workspace_id,
            created_s=self._now_s(),
            subject=subject,
        )
        self._note(by, "member.create", place, after=settings)
        return self._books.members[place]

    async def get(self, workspace_id: str, member_id: str) -> Member | None:
        """Return a member, removed or not."""
        return self._books.members.get((workspace_id, member_id))

    async def find_by_subject(self, workspace_id: str, subject: str) -> Member | None:
        """Return the member as whom an identity signs in."""
        found = [
            it
            for it in self._books.members.values()
            if (it.workspace_id, it.subject) == (workspace_id, subject)
        ]
        return found[0] if found else None

    async def link(
        self, workspace_id: str, member_id: str, subject: str, *, by: Actor
    ) -> Member | None:
        """Let an identity sign in as a member who has none."""
        place = (workspace_id, member_id)
        member = self._books.members.get(place)
        if member is None or member.removed_s is not None or member.subject is not None:
            return None
        if await self.find_by_subject(workspace_id, subject) is not None:
            return None
        self._books.members[place] = replace(member, subject=subject)
        self._note(by, "member.change", place)
        return self._books.members[place]

    async def list(
        self, workspace_id: str, *, after: str | None = None, limit: int = PEOPLE_PAGE_MAX
    ) -> Page[Member]:
        """Return a page of members in the order of their ids."""
        return _page(self._books.members, workspace_id, after, limit)

    async def change(
        self,
        workspace_id: str,
        member_id: str,
        edit: Callable[[MemberSettings], MemberSettings],
        *,
        by: Actor,
    ) -> Member | None:
        """Replace a member's settings by what `edit` returns."""
        place = (workspace_id, member_id)
        member = self._books.members.get(place)
        if member is None or member.removed_s is not None:
            return None
        old = MemberSettings(**_settings(member))
        new = edit(old)
        if new.team_id != old.team_id:
            self._books.check_belonging(workspace_id, team_id=new.team_id)
        if old.is_active_owner and not new.is_active_owner:
            self._keep_an_owner(member, "disabled" if new.disabled else "role")
        if new != old:
            self._books.members[place] = replace(member, **_fields(new))
            self._note(by, "member.change", place, old, new)
        return self._books.members[place]

    async def remove(self, workspace_id: str, member_id: str, *, by: Actor) -> bool | None:
        """Remove a member; False if the member was removed before."""
        place = (workspace_id, member_id)
        member = self._books.members.get(place)
        if member is None or member.removed_s is not None:
            return None if member is None else False
        if member.is_active_owner:
            self._keep_an_owner(member, "member_id")
        self._books.members[place] = replace(member, removed_s=self._now_s())
        self._note(by, "member.remove", place)
        return True

    def _keep_an_owner(self, member: Member, param: str) -> None:
        for other in self._books.members.values():
            here = other.workspace_id == member.workspace_id and other.removed_s is None
            if here and other.is_active_owner and other.id != member.id:
                return
        raise RequestError(
            ErrorCode.INVALID_REQUEST, "A workspace must have an owner.", param=param
        )


class MemorySessionStore(_Noted):
    """Implements `stores.ports.people.SessionStore`."""

    def __init__(
        self,
        books: MemoryBooks,
        ids: IdSource,
        clock: Clock,
        keys: MemoryKeyStore,
        prefix: str,
    ) -> None:
        super().__init__(books, ids, clock)
        self._keys = keys
        self._prefix = prefix

    async def open(
        self,
        workspace_id: str,
        member_id: str,
        *,
        lifetime_s: int,
        by: Actor,
        renewable_s: int | None = None,
    ) -> OpenedSession | None:
        """Open a session; None without such a member."""
        now_s = self._now_s()
        session = Session(
            id=self._ids.new_id(),
            member_id=member_id,
            opened_s=now_s,
            renewed_s=now_s,
            expires_s=now_s + (renewable_s or lifetime_s),
            renewable=renewable_s is not None,
            origin=by.origin,
        )
        return await self._issue(workspace_id, session, lifetime_s, by)

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
        """Give a session a further secret; None if the session has ended."""
        session = self._books.sign_ins.get((workspace_id, member_id, session_id))
        if session is None:
            return None
        now_s = self._now_s()
        renewed = replace(session, renewed_s=now_s, expires_s=now_s + renewable_s, origin=by.origin)
        return await self._issue(workspace_id, renewed, lifetime_s, by)

    async def _issue(
        self, workspace_id: str, session: Session, lifetime_s: int, by: Actor
    ) -> OpenedSession | None:
        member_id = session.member_id
        member = self._books.members.get((workspace_id, member_id))
        if member is None or member.removed_s is not None or member.disabled:
            return None
        name = f"{SESSION_KEY_PREFIX}{member_id}"
        named = [
            key.id
            for key in self._books.keys.values()
            if (key.workspace_id, key.settings.label) == (workspace_id, name)
        ]
        if not named:
            new = NewKey(workspace_id=workspace_id, label=name, member_id=member_id)
            named = [(await self._keys.create(new, by=by)).summary.id]
        secret = new_secret(self._prefix, self._ids.random_bytes)
        expires_s = self._now_s() + lifetime_s
        self._books.sign_ins[workspace_id, member_id, session.id] = session
        self._books.sessions[secret] = MemorySession(
            key_id=named[0], expires_s=expires_s, id=session.id
        )
        self._note(by, "session.open", (workspace_id, member_id))
        return OpenedSession(id=session.id, secret=secret, expires_s=expires_s, key_id=named[0])

    async def list(
        self,
        workspace_id: str,
        member_id: str,
        *,
        after: str | None = None,
        limit: int = PEOPLE_PAGE_MAX,
    ) -> Page[Session]:
        """Return a page of a member's sessions, oldest first."""
        found = [
            session
            for (place, member, id_), session in sorted(self._books.sign_ins.items())
            if (place, member) == (workspace_id, member_id) and (after is None or id_ > after)
        ]
        return Page(
            found=tuple(it for it in found[:limit] if it.expires_s > self._now_s()),
            next=found[limit - 1].id if len(found) > limit else None,
        )

    async def close(self, secret: str, *, by: Actor) -> bool:
        """End the session of a secret; False for none."""
        session = self._books.sessions.get(secret)
        if session is None:
            return False
        key = self._books.keys[session.key_id]
        return await self.end(key.workspace_id, str(key.settings.member_id), session.id, by=by)

    async def end(self, workspace_id: str, member_id: str, session_id: str, *, by: Actor) -> bool:
        """End a session; False for none."""
        if self._books.sign_ins.pop((workspace_id, member_id, session_id), None) is None:
            return False
        self._forget(session_id)
        self._note(by, "session.close", (workspace_id, member_id))
        return True

    async def end_all(self, workspace_id: str, member_id: str, *, by: Actor) -> bool:
        """End all sessions of a member; False without such a member."""
        member = self._books.members.get((workspace_id, member_id))
        if member is None or member.removed_s is not None:
            return False
        for place in [it for it in self._books.sign_ins if it[:2] == (workspace_id, member_id)]:
            del self._books.sign_ins[place]
            self._forget(place[2])
        self._note(by, "session.close_all", (workspace_id, member_id))
        return True

    def _forget(self, session_id: str) -> None:
        for secret in [it for it, held in self._books.sessions.items() if held.id == session_id]:
            del self._books.sessions[secret]


def _fields(settings: Struct) -> dict[str, object]:
    return {name: getattr(settings, name) for name in settings.__struct_fields__}
