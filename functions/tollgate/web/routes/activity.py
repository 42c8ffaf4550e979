"""Usage and cost of a workspace by day, model, provider and key."""

from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from tollgate.core.activity import without_caller_labels
from tollgate.core.clock import DAY_S
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.money import usd
from tollgate.web.activity_shapes import ActivityObject
from tollgate.web.admission import OwnThings, admitted_router
from tollgate.web.csv_columns import csv_cells, csv_columns
from tollgate.web.csv_reply import OR_CSV, Format, csv_reply, wanted_format
from tollgate.web.own import Own
from tollgate.web.routes.generations import Selection
from tollgate.web.services import Services
from tollgate.web.shapes import Usd, moment

_DAYS_MAX = 400
_DEFAULT_DAYS = 30
# Callers name their sessions as they like, and a reply of Lambda that is not streamed has 6 MB.
ROWS_MAX: Final = 4_000


class ActivityReply(BaseModel):
    """Activity by day, oldest first; `total` is the exact sum of the listed rows."""

    data: list[ActivityObject]
    total: Usd
    partial_days: list[str] = Field(
        description="live days of which not every record is counted: too many, or corrupt ones"
    )
    closed_days: list[str] = Field(description="days whose sums are final")
    live_days: list[str] = Field(description="days that are counted from their records")
    missing_days: list[str] = Field(
        description="days without final sums whose records have expired: nothing is known of them"
    )
    caller_labels_left_out: bool = Field(
        description=f"true if there were more than {ROWS_MAX:,} rows: these are summed over the "
        "labels that callers stated about themselves; ask for fewer days, or with a filter"
    )
    last_record_at: datetime | None = Field(description="latest record of the live days")


def activity_routes(services: Services) -> APIRouter:
    """Return the routes of activity."""
    router = admitted_router(services, prefix="/v1", tag="generations")

    async def reply(own: Own, query: Selection, format_: Format) -> ActivityReply | Response:
        key_id = await services.find_key_id(query.key, own)
        wanted = query.filter(services.now_s(), key_id=key_id, own=own, days=_DEFAULT_DAYS)
        if wanted.until_s - wanted.since_s > _DAYS_MAX * DAY_S:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"since: at most {_DAYS_MAX} days.", param="since"
            )
        found = await services.activity.activity(own.workspace_id, wanted.since_s, wanted.until_s)
        rows = [row for row in found.rows if row.matches(wanted)]
        too_many = len(rows) > ROWS_MAX
        if too_many:
            rows = list(without_caller_labels(rows))
        if format_ == "csv":
            shown = map(ActivityObject.of, rows)
            return csv_reply(csv_columns(ActivityObject), map(csv_cells, shown))
        return ActivityReply(
            data=[ActivityObject.of(row) for row in rows],
            total=usd(sum(row.cost_nano_usd for row in rows)),
            partial_days=list(found.partial_days),
            closed_days=list(found.closed_days),
            live_days=list(found.live_days),
            missing_days=list(found.missing_days),
            caller_labels_left_out=too_many,
            last_record_at=None if found.last_record_s is None else moment(found.last_record_s),
        )

    @router.get("/activity", response_model=ActivityReply, responses=OR_CSV)
    async def show_activity(
        own: OwnThings,
        query: Annotated[Selection, Query()],
        format_: Annotated[Format, Depends(wanted_format)],
    ) -> ActivityReply | Response:
        """List activity of whole UTC days, by default of the last 30.

        Figures of today are at most a minute old.
        """
        return await reply(own, query, format_)

    @router.get(
        "/workspaces/{workspace_id}/activity", response_model=ActivityReply, responses=OR_CSV
    )
    async def show_workspace_activity(
        workspace_id: str,
        query: Annotated[Selection, Query()],
        format_: Annotated[Format, Depends(wanted_format)],
    ) -> ActivityReply | Response:
        """List activity of whole UTC days of a workspace, by default of the last 30."""
        await services.find_workspace(workspace_id)
        return await reply(Own(workspace_id=workspace_id), query, format_)

    return router
