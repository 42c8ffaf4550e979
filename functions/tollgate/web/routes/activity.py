"""Usage and cost of a workspace by day, model, provider and key, or summed over some of them."""

from contextlib import aclosing
from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from pydantic import BaseModel, Field
from starlette.responses import Response

from tollgate.core.activity import (
    ROWS_READ_MAX,
    ActivityRow,
    ActivityStream,
    GenerationFilter,
    days_within,
)
from tollgate.core.activity_groups import ActivityGroups
from tollgate.core.clock import DAY_S
from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.money import usd
from tollgate.web.activity_cursor import read_activity_cursor, write_activity_cursor
from tollgate.web.activity_shapes import ActivityObject
from tollgate.web.admission import OwnThings, admitted_router
from tollgate.web.csv_columns import csv_cells, csv_columns
from tollgate.web.csv_reply import OR_CSV, Format, csv_reply, wanted_format
from tollgate.web.own import Own
from tollgate.web.reply_size import REPLY_BYTES_MAX, size_in_reply
from tollgate.web.routes.generations import Selection
from tollgate.web.services import Services
from tollgate.web.shapes import Usd, moment

_DAYS_MAX = 400
_DEFAULT_DAYS = 30
_LIMIT_MAX: Final = 10_000
_BY_MAX: Final = 5
# Of a reply, for all but its rows: four lists of 400 days, and a cursor.
_REST_BYTES: Final = 50_000
# In memory at a time, of half a kilobyte each.
GROUPS_MAX: Final = 50_000


class ActivityQuery(Selection):
    """Filter of activity, what it is summed by, and the page to return."""

    by: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=128)]], Field(max_length=_BY_MAX)
    ] = Field(
        [],
        description="sum over all but these: day, model, provider, key, or the name of a label; "
        "may be repeated",
    )
    limit: Annotated[int, Field(ge=1, le=_LIMIT_MAX)] | None = Field(
        None, description="rows of a page at most; without it, as many as a reply has room for"
    )
    cursor: Annotated[str, Field(max_length=4096)] | None = Field(
        None, description="the `next_cursor` of the previous page"
    )


class ActivityReply(BaseModel):
    """Activity by day, oldest first, or sums in the order of their names."""

    data: list[ActivityObject]
    total: Usd | None = Field(
        description="the exact sum of the rows of all pages; null where a cursor asks for rows"
    )
    next_cursor: str | None = Field(description="the `cursor` of the next page, null on the last")
    partial_days: list[str] = Field(
        description="live days of which not every record is counted: too many, or corrupt ones"
    )
    closed_days: list[str] = Field(description="days whose sums are final")
    live_days: list[str] = Field(description="days that are counted from their records")
    missing_days: list[str] = Field(
        description="days without final sums whose records have expired: nothing is known of them"
    )
    last_record_at: datetime | None = Field(description="latest record of the live days")


def activity_routes(services: Services) -> APIRouter:
    """Return the routes of activity."""
    router = admitted_router(services, prefix="/v1", tag="generations")

    async def reply(own: Own, query: ActivityQuery, format_: Format) -> Response:
        key_id = await services.find_key_id(query.key, own)
        wanted = query.filter(services.now_s(), key_id=key_id, own=own, days=_DEFAULT_DAYS)
        if wanted.until_s - wanted.since_s > _DAYS_MAX * DAY_S:
            raise RequestError(
                ErrorCode.INVALID_REQUEST, f"since: at most {_DAYS_MAX} days.", param="since"
            )
        by = tuple(dict.fromkeys(query.by))
        after = read_activity_cursor(query.cursor, by, days_within(wanted.since_s, wanted.until_s))
        page = _Page(by, query.limit)
        found = await services.activity.read(
            own.workspace_id, wanted.since_s, wanted.until_s, after="" if by else "".join(after)
        )
        async with aclosing(found.rows):
            total = (
                await _sum_groups(found, wanted, page, after)
                if by
                else await _list_rows(found, wanted, page, is_first=not after)
            )
        next_ = None if page.next is None else write_activity_cursor(by, page.next)
        if format_ == "csv":
            return csv_reply(csv_columns(ActivityObject), map(csv_cells, page.shown), next_=next_)
        shown = ActivityReply(
            data=page.shown,
            total=None if total is None else usd(total),
            next_cursor=next_,
            partial_days=list(found.partial_days),
            closed_days=list(found.closed_days),
            live_days=list(found.live_days),
            missing_days=list(found.missing_days),
            last_record_at=None if found.last_record_s is None else moment(found.last_record_s),
        )
        # Written once: a page may be as large as a reply can be.
        return Response(shown.model_dump_json(), media_type="application/json")

    @router.get("/activity", response_model=ActivityReply, responses=OR_CSV)
    async def show_activity(
        own: OwnThings,
        query: Annotated[ActivityQuery, Query()],
        format_: Annotated[Format, Depends(wanted_format)],
    ) -> Response:
        """List activity of whole UTC days, by default of the last 30.

        Figures of today are at most a minute old.
        """
        return await reply(own, query, format_)

    @router.get(
        "/workspaces/{workspace_id}/activity", response_model=ActivityReply, responses=OR_CSV
    )
    async def show_workspace_activity(
        workspace_id: str,
        query: Annotated[ActivityQuery, Query()],
        format_: Annotated[Format, Depends(wanted_format)],
    ) -> Response:
        """List activity of whole UTC days of a workspace, by default of the last 30."""
        await services.find_workspace(workspace_id)
        return await reply(Own(workspace_id=workspace_id), query, format_)

    return router


class _Page:
    """The rows of a reply, as many as it has room for."""

    def __init__(self, by: tuple[str, ...], limit: int | None) -> None:
        self.by = by
        self._limit = limit or _LIMIT_MAX
        self._room = REPLY_BYTES_MAX - _REST_BYTES
        self._last: tuple[str, ...] = ()
        self.shown: list[ActivityObject] = []
        # The place of the last row, once a row is left for the next page.
        self.next: tuple[str, ...] | None = None

    def add(self, place: tuple[str, ...], row: ActivityRow) -> None:
        """Add the next row; the first that has no room ends the page."""
        shown = ActivityObject.of(row, self.by) if self.by else ActivityObject.of(row)
        # As JSON, with a comma; a row of CSV takes less.
        self._room -= size_in_reply(shown.model_dump_json().encode()) + 1
        if self.shown and (self._room < 0 or len(self.shown) == self._limit):
            self.next = self._last
        else:
            self.shown.append(shown)
            self._last = place


async def _list_rows(
    found: ActivityStream, wanted: GenerationFilter, page: _Page, *, is_first: bool
) -> int | None:
    """Put the rows that are wanted on a page; return their sum in the first page's case.

    A later page has no sum, because it would read all rows before and behind it again.
    """
    total = read = 0
    async for row in found.rows:
        read += 1
        _check_read(read)
        if not row.matches(wanted):
            continue
        total += row.cost_nano_usd
        if page.next is None:
            page.add((row.place,), row)
        if page.next is not None and not is_first:
            break
    return total if is_first else None


async def _sum_groups(
    found: ActivityStream, wanted: GenerationFilter, page: _Page, after: tuple[str, ...]
) -> int:
    """Put the groups behind a place on a page; return the sum of all groups."""
    groups = ActivityGroups(page.by)
    total = read = 0
    async for row in found.rows:
        read += 1
        _check_read(read)
        if row.matches(wanted):
            total += row.cost_nano_usd
            groups.add(row)
            if len(groups) > GROUPS_MAX:
                raise RequestError(
                    ErrorCode.INVALID_REQUEST,
                    f"by: these are more than {GROUPS_MAX:,} sums. Name less, ask for fewer days, "
                    "or with a filter; without `by`, all rows come in pages.",
                    param="by",
                )
    for place, row in groups.rows(after):
        page.add(place, row)
        if page.next is not None:
            break
    return total


def _check_read(rows: int) -> None:
    if rows > ROWS_READ_MAX:
        raise RequestError(
            ErrorCode.INVALID_REQUEST,
            f"since: these days have more than {ROWS_READ_MAX:,} rows of activity, too many for a "
            "request: ask for fewer days. The daily export has all.",
            param="since",
        )
