"""Routes for the audit log: a workspace reads its own entries, and the operator reads all."""

from datetime import date, datetime, timedelta
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from tollgate.core.clock import DAY_S
from tollgate.core.errors import invalid_request
from tollgate.core.principal import Principal
from tollgate.core.records.audit import (
    Actor,
    ActorKind,
    AuditEntry,
    AuditFilter,
    LogKind,
    SealedDay,
)
from tollgate.stores.rules.audit_chain import last_closed_day
from tollgate.web.admission import Caller, admitted_router
from tollgate.web.http.csv_columns import csv_cells, csv_columns
from tollgate.web.http.csv_reply import OR_CSV, Format, csv_reply, wanted_format
from tollgate.web.services import Services
from tollgate.web.shapes import Moment, Unreadable, moment

_LIMIT_MAX: Final = 1000
_DEFAULT_DAYS: Final = 30
_DEFAULT_S: Final = _DEFAULT_DAYS * DAY_S
_DAYS_MAX: Final = 92
_Word = Annotated[str, Field(max_length=128)]


class AuditQuery(BaseModel):
    """Filter of entries written in [since, until), by default in the last 30 days."""

    model_config = ConfigDict(extra="ignore")

    since: Moment | None = None
    until: Moment | None = None
    actor: Annotated[str, Field(max_length=2048)] | None = Field(
        None,
        description="id or name of a key, id of a member, ARN of an AWS identity, or name of a "
        "process",
    )
    target: _Word | None = Field(
        None,
        description="id or name of a key, id of a team, member, credit entry or workspace, or sha",
    )
    kind: LogKind | None = Field(
        None,
        description="`change`, or `access`: reads of content by managers, refused calls and failed "
        "sign-ins, each at most once an hour",
    )
    workspace: _Word | None = Field(None, description="null means all workspaces, for the operator")
    limit: Annotated[int, Field(ge=1, le=_LIMIT_MAX)] = 100
    cursor: _Word | None = Field(None, description="the `next_cursor` of the previous page")

    def filter(self, now_s: int) -> AuditFilter:
        """Return the filter for the store."""
        # No entry is later than now, unless clocks differ.
        end_s = now_s + 60
        until_s = min(int(self.until.timestamp()), end_s) if self.until else end_s
        since_s = int(self.since.timestamp()) if self.since else until_s - _DEFAULT_S
        return AuditFilter(
            since_s=since_s,
            until_s=until_s,
            actor=self.actor,
            target=self.target,
            kind=self.kind,
        )


class AuditObject(BaseModel):
    """One change: the time, the actor, the target, and the fields that changed, as text."""

    id: str
    created_at: datetime
    action: str = Field(description="kind of the target and a verb, such as `key.create`")
    actor_type: ActorKind
    actor: str = Field(description="id of a key, ARN of an AWS identity, or name of a process")
    actor_name: str | None = Field(description="name of the key at that time")
    actor_member_id: str | None = Field(
        description="member of the key or session; null for a key without a member"
    )
    actor_workspace_id: str | None
    origin: str | None = Field(
        description="network address of the request; null if the actor is of another workspace"
    )
    request_id: str | None
    commit: str | None = Field(
        description="commit of the file that the change applies, as the request's header "
        "`x-tollgate-commit` states it"
    )
    workspace_id: str | None = Field(description="null for a change to the catalog")
    target: str = Field(
        description="id of a key, team, member, credit entry or workspace, or sha of a catalog"
    )
    target_name: str | None = Field(description="name of the key at that time")
    before: dict[str, str] = Field(description="old values; a field without one is missing")
    after: dict[str, str] = Field(description="new values; a field without one is missing")

    @classmethod
    def of(cls, entry: AuditEntry, *, shows_origin: bool) -> "AuditObject":
        """Build the object from a stored entry."""
        actor = entry.actor
        return cls(
            id=entry.id,
            created_at=moment(entry.at_ms // 1_000).replace(
                microsecond=entry.at_ms % 1_000 * 1_000
            ),
            action=entry.action,
            actor_type=actor.kind,
            actor=actor.id,
            actor_name=actor.name,
            actor_member_id=actor.member_id,
            actor_workspace_id=actor.workspace_id,
            origin=actor.origin if shows_origin else None,
            request_id=actor.request_id,
            commit=actor.commit,
            workspace_id=entry.workspace_id,
            target=entry.target,
            target_name=entry.target_name,
            before=dict(entry.before),
            after=dict(entry.after),
        )


class AuditReply(BaseModel):
    """Entries, latest first; `next_cursor` requests the next page."""

    data: list[AuditObject]
    next_cursor: str | None
    unreadable: Unreadable


class DaysQuery(BaseModel):
    """The UTC days to verify, by default the last 30 closed days."""

    model_config = ConfigDict(extra="ignore")

    since: date | None = None
    until: date | None = Field(None, description="the last day, included")
    workspace: _Word | None = Field(
        None, description="null means the whole log for the operator, the own workspace for others"
    )

    def days(self, now_s: int) -> tuple[str, str]:
        """Return the first and the last day; raise RequestError for more than 92 days."""
        last = min(self.until or date.max, date.fromisoformat(last_closed_day(now_s)))
        first = self.since or last - timedelta(days=_DEFAULT_DAYS - 1)
        if (last - first).days >= _DAYS_MAX:
            raise invalid_request(f"At most {_DAYS_MAX} days are verified at once.", "since")
        return first.isoformat(), last.isoformat()


class AuditDayObject(BaseModel):
    """A day of the log, compared with its seal."""

    day: date
    entries: int = Field(description="number of entries that the log has now")
    sealed_entries: int | None = Field(description="number of entries when the day was sealed")
    hash: str | None = Field(description="SHA-256 over the day's entries and the seal before")
    previous_hash: str | None
    problem: str | None = Field(description="null if the log is as it was sealed")
    first_difference: str | None = Field(description="id of the first entry that differs")

    @classmethod
    def of(cls, checked: SealedDay) -> "AuditDayObject":
        """Build the object from a checked day."""
        sealed = checked.seal
        return cls(
            day=date.fromisoformat(checked.day),
            entries=checked.entries,
            sealed_entries=None if sealed is None else sealed.entries,
            hash=None if sealed is None else sealed.hash,
            previous_hash=None if sealed is None else sealed.previous,
            problem=checked.problem,
            first_difference=checked.first_difference,
        )


class AuditDaysReply(BaseModel):
    """The closed days of a log, oldest first."""

    data: list[AuditDayObject]


def audit_routes(services: Services) -> APIRouter:
    """Return the route `/v1/audit`."""
    router = admitted_router(services, prefix="/v1", tag="audit")

    @router.get("/audit", response_model=AuditReply, responses=OR_CSV)
    async def list_changes(
        principal: Caller,
        query: Annotated[AuditQuery, Query()],
        format_: Annotated[Format, Depends(wanted_format)],
    ) -> AuditReply | Response:
        """List changes to keys, people, credit, workspaces and catalogs, latest first.

        The operator sees all changes, other callers those of their own workspace.
        """
        page = await services.audit_log.page(
            _scope(services, principal, query.workspace),
            query.filter(services.now_s()),
            limit=query.limit,
            before=query.cursor,
        )
        found = [
            AuditObject.of(entry, shows_origin=_may_see_origin(services, principal, entry.actor))
            for entry in page.found
        ]
        if format_ == "csv":
            rows = map(csv_cells, found)
            columns = csv_columns(AuditObject)
            return csv_reply(columns, rows, next_=page.next, unreadable=page.unreadable)
        return AuditReply(data=found, next_cursor=page.next, unreadable=list(page.unreadable))

    @router.get("/audit/days", response_model=AuditDaysReply)
    async def list_days(principal: Caller, query: Annotated[DaysQuery, Query()]) -> AuditDaysReply:
        """Compare each closed day of the audit log with its seal.

        A changed, removed or inserted entry is a `problem` of its day.
        """
        first, last = query.days(services.now_s())
        scope = _scope(services, principal, query.workspace)
        checked = await services.audit_log.check(scope, first, last)
        return AuditDaysReply(data=[AuditDayObject.of(day) for day in checked])

    return router


def _scope(services: Services, principal: Principal, named: str | None) -> str | None:
    """Return the workspace whose entries a caller sees; None for all workspaces.

    Raises AccessError if `named` is a workspace that the caller may not see.
    """
    if named not in (None, principal.workspace_id):
        services.check_operator(principal)
    return named if services.is_operator(principal) else principal.workspace_id


def _may_see_origin(services: Services, principal: Principal, actor: Actor) -> bool:
    return services.is_operator(principal) or principal.workspace_id == actor.workspace_id
