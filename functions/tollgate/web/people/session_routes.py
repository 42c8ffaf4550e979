"""Routes of members' sessions, which are listed and ended but never managed like keys."""

from datetime import datetime
from typing import Annotated, Literal

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field

from tollgate.core.errors import not_found
from tollgate.core.principal import Principal
from tollgate.stores.ports.people import PEOPLE_PAGE_MAX, Member, Session
from tollgate.web.admission import By, Caller, OwnThings, admitted_router
from tollgate.web.own import Own
from tollgate.web.people.member_routes import check_role
from tollgate.web.services import Services
from tollgate.web.shapes import Unreadable, moment


class SessionsQuery(BaseModel):
    """The page of sessions to return."""

    model_config = ConfigDict(extra="ignore")

    cursor: Annotated[str, Field(max_length=128)] | None = Field(
        None, description="the `next_cursor` of the previous page"
    )
    limit: Annotated[int, Field(ge=1, le=PEOPLE_PAGE_MAX)] = PEOPLE_PAGE_MAX


class MemberSessionObject(BaseModel):
    """A session of a member, without its secrets."""

    id: str
    member_id: str
    opened_at: datetime
    renewed_at: datetime = Field(description="when its latest secret was issued")
    expires_at: datetime = Field(description="when it ends unless it is renewed before")
    renewable: bool = Field(description="whether the program has a refresh token")
    origin: str | None = Field(description="network address that received the latest secret")

    @classmethod
    def of(cls, session: Session) -> "MemberSessionObject":
        """Build the object from a stored session."""
        return cls(
            id=session.id,
            member_id=session.member_id,
            opened_at=moment(session.opened_s),
            renewed_at=moment(session.renewed_s),
            expires_at=moment(session.expires_s),
            renewable=session.renewable,
            origin=session.origin,
        )


class MemberSessionsReply(BaseModel):
    """Sessions, oldest first; `next_cursor` is the `cursor` of the next page."""

    data: list[MemberSessionObject]
    next_cursor: str | None
    unreadable: Unreadable


class EndedSessionReply(BaseModel):
    """A session that was ended."""

    id: str
    ended: Literal[True] = True


class EndedSessionsReply(BaseModel):
    """A member whose sessions have all been ended."""

    member_id: str
    ended: Literal[True] = True


def session_routes(services: Services) -> APIRouter:
    """Return the routes below `/v1/members/{member_id}/sessions`."""
    router = admitted_router(services, prefix="/v1", tag="people")

    @router.get("/members/{member_id}/sessions")
    async def list_member_sessions(
        own: OwnThings, member_id: str, wanted: Annotated[SessionsQuery, Query()]
    ) -> MemberSessionsReply:
        """List the sessions of a member that have not ended, oldest first.

        A page may have fewer sessions than its limit, even none, while there is a next page.
        """
        await _find(services, own, member_id)
        page = await services.sessions.list(
            own.workspace_id, member_id, after=wanted.cursor, limit=wanted.limit
        )
        return MemberSessionsReply(
            data=[MemberSessionObject.of(session) for session in page.found],
            next_cursor=page.next,
            unreadable=list(page.unreadable),
        )

    @router.delete("/members/{member_id}/sessions")
    async def end_member_sessions(
        principal: Caller, own: OwnThings, by: By, member_id: str
    ) -> EndedSessionsReply:
        """End all sessions of a member, who may sign in again; keys stay as they are.

        The sessions' refresh tokens end as well. Only an owner may end the sessions of owners.
        """
        _check_rights(await _find(services, own, member_id), principal)
        if not await services.sessions.end_all(own.workspace_id, member_id, by=by):
            raise not_found("There is no such member.", "member_id")
        return EndedSessionsReply(member_id=member_id)

    @router.delete("/members/{member_id}/sessions/{session_id}")
    async def end_member_session(
        principal: Caller, own: OwnThings, by: By, *, member_id: str, session_id: str
    ) -> EndedSessionReply:
        """End one session, which every instance refuses within five seconds."""
        _check_rights(await _find(services, own, member_id), principal)
        if not await services.sessions.end(own.workspace_id, member_id, session_id, by=by):
            raise not_found("There is no such session.", "session_id")
        return EndedSessionReply(id=session_id)

    return router


async def _find(services: Services, own: Own, member_id: str) -> Member:
    member = None
    if own.has_member(member_id):
        member = await services.members.get(own.workspace_id, member_id)
    if member is None or member.removed_s is not None:
        raise not_found("There is no such member.", "member_id")
    return member


def _check_rights(member: Member, principal: Principal) -> None:
    """Raise AccessError unless the caller may end the member's sessions: the caller's own, or those
    of lower roles.

    A member's key does not have the member's rights here; otherwise an admin could create a key for
    an owner and use it.
    """
    if not (principal.session and principal.member_id == member.id):
        check_role(member.role, principal)
