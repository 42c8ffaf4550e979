"""What a workspace used by day, model, provider and key."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query
from starlette.responses import Response

from tollgate.core.activity import DAY_S
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.money import usd
from tollgate.core.principal import Principal
from tollgate.web.csv_reply import OR_CSV, Format, csv_reply, wanted_format
from tollgate.web.generation_shapes import (
    ACTIVITY_COLUMNS,
    ActivityObject,
    ActivityReply,
    activity_cells,
)
from tollgate.web.routes.generations import Selection
from tollgate.web.services import Services

_DAYS_MAX = 400
_DEFAULT_DAYS = 30


def activity_routes(services: Services) -> APIRouter:
    """`/v1/activity`."""
    router = APIRouter(prefix="/v1", tags=["generations"])
    administrator = Annotated[Principal, Depends(services.administrator)]

    @router.get("/activity", response_model=ActivityReply, responses=OR_CSV)
    async def show_activity(
        principal: administrator,
        query: Annotated[Selection, Query()],
        format_: Annotated[Format, Depends(wanted_format)],
    ) -> ActivityReply | Response:
        """Whole UTC days, the last thirty if nothing is said; today's are a minute old at most."""
        wanted = query.filter(services.now_s(), days=_DEFAULT_DAYS)
        if wanted.until_s - wanted.since_s > _DAYS_MAX * DAY_S:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"since: at most {_DAYS_MAX} days.", param="since"
            )
        found = await services.activity.activity(
            principal.workspace_id, wanted.since_s, wanted.until_s
        )
        rows = [row for row in found.rows if row.matches(wanted)]
        if format_ == "csv":
            return csv_reply(ACTIVITY_COLUMNS, map(activity_cells, rows))
        return ActivityReply(
            data=[ActivityObject.of(row) for row in rows],
            total=usd(sum(row.cost_nano_usd for row in rows)),
            partial_days=list(found.partial_days),
        )

    return router
