"""Routes for the activity of a workspace: usage and cost by day, model, provider and key."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from contextlib import aclosing
from datetime import datetime
from typing import Annotated, Final

from fastapi import APIRouter, Depends, Query
from msgspec import MsgspecError, json
from pydantic import BaseModel, Field
from starlette.responses import Response

from tollgate.core.clock import DAY_S
from tollgate.core.errors import RequestError, invalid_request
from tollgate.core.money.amounts import usd
from tollgate.core.records.activity import (
    ROWS_READ_MAX,
    ActivityRow,
    ActivityStream,
    GenerationFilter,
    day_of,
    days_within,
)
from tollgate.core.records.activity_groups import ActivityGroups
from tollgate.web.admission import OwnThings, admitted_router
from tollgate.web.http.csv_columns import csv_cells, csv_columns
from tollgate.web.http.csv_reply import OR_CSV, Format, csv_reply, wanted_format
from tollgate.web.http.reply import REPLY_BYTES_MAX, size_in_reply
from tollgate.web.own import Own
from tollgate.web.records.activity_shapes import OpenRouterActivity
from tollgate.web.records.generation_routes import Selection
from tollgate.web.services import Services
from tollgate.web.shapes import Usd, moment

_DAYS_MAX = 400
_DEFAULT_DAYS = 30
_BY_MAX: Final = 5
# The maximum number of rows on a page.
ROWS_MAX: Final = 10_000
# Bytes of the reply reserved for everything but the rows: four lists of 400 days, and a cursor.
_REST_BYTES: Final = 50_000
# Maximum number of sums in memory; each takes half a kilobyte.
GROUPS_MAX: Final = 50_000


class ReplyPage:
    """The rows of a reply, up to the limit and the maximum size."""

    def __init__(self, by: tuple[str, ...], limit: int | None = None) -> None:
        self.by = by
        self._limit = limit or ROWS_MAX
        self._room = REPLY_BYTES_MAX - _REST_BYTES
        self._last: tuple[str, ...] = ()
        self.shown: list[OpenRouterActivity] = []
        # The position of the page's last row; None until a row does not fit.
        self.next: tuple[str, ...] | None = None

    def add(self, place: tuple[str, ...], row: ActivityRow) -> None:
        """Add the next row; the first row that does not fit ends the page."""
        shown = OpenRouterActivity.show(row, self.by)
        # Size as JSON with a comma; a CSV row is shorter.
        self._room -= size_in_reply(shown.model_dump_json().encode()) + 1
        if self.shown and (self._room < 0 or len(self.shown) == self._limit):
            self.next = self._last
        else:
            self.shown.append(shown)
            self._last = place


async def list_rows(
    found: ActivityStream, wanted: GenerationFilter, page: ReplyPage, *, is_first: bool
) -> int | None:
    """Add the matching rows to a page; return the sum over all pages, or None for a later page.

    A later page has no sum, because computing it would mean reading all rows of the other pages
    again.
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


async def sum_groups(
    found: ActivityStream, wanted: GenerationFilter, page: ReplyPage, after: tuple[str, ...]
) -> int:
    """Add the groups after a position to a page; return the sum of all groups."""
    groups = ActivityGroups(page.by)
    total = read = 0
    async for row in found.rows:
        read += 1
        _check_read(read)
        if row.matches(wanted):
            total += row.cost_nano_usd
            groups.add(row)
            if len(groups) > GROUPS_MAX:
                raise invalid_request(
                    f"by: there are more than {GROUPS_MAX:,} groups. Name fewer fields, "
                    "fewer days, or a filter; without `by`, all rows come in pages.",
                    "by",
                )
    for place, row in groups.rows(after):
        page.add(place, row)
        if page.next is not None:
            break
    return total


def _check_read(rows: int) -> None:
    if rows > ROWS_READ_MAX:
        raise invalid_request(
            f"since: the days have more than {ROWS_READ_MAX:,} rows of activity, too many for one "
            "request. Request fewer days, or read the daily export, which has all rows.",
            "since",
        )


class ActivityQuery(Selection):
    """A filter for activity, the fields to group by, and the page to return."""

    by: Annotated[
        list[Annotated[str, Field(min_length=1, max_length=128)]], Field(max_length=_BY_MAX)
    ] = Field(
        [],
        description="fields to group by: day, model, provider, key, or the name of a label; "
        "may be repeated",
    )
    limit: Annotated[int, Field(ge=1, le=ROWS_MAX)] | None = Field(
        None,
        description="maximum number of rows on a page; by default, as many as fit into a reply",
    )
    cursor: Annotated[str, Field(max_length=4096)] | None = Field(
        None, description="the `next_cursor` of the previous page"
    )


class ActivityReply(BaseModel):
    """Activity by day, oldest first, or sums ordered by their names."""

    data: list[OpenRouterActivity]
    total: Usd | None = Field(description="exact sum over all pages; null on later pages of rows")
    next_cursor: str | None = Field(description="the `cursor` of the next page, null on the last")
    partial_days: list[str] = Field(
        description="live days on which some records are not counted: too many, or corrupt"
    )
    closed_days: list[str] = Field(description="days whose sums are final")
    live_days: list[str] = Field(description="days that are counted from their records")
    missing_days: list[str] = Field(description="days whose records expired before a final sum")
    last_record_at: datetime | None = Field(description="latest record of the live days")


def activity_routes(services: Services) -> APIRouter:
    """Return the routes of activity."""
    router = admitted_router(services, prefix="/v1", tag="generations")

    async def reply(own: Own, query: ActivityQuery, format_: Format) -> Response:
        key_id = await services.find_key_id(query.key, own)
        wanted = query.filter(services.now_s(), key_id=key_id, own=own, days=_DEFAULT_DAYS)
        if wanted.until_s - wanted.since_s > _DAYS_MAX * DAY_S:
            raise invalid_request(f"since: at most {_DAYS_MAX} days.", "since")
        by = tuple(dict.fromkeys(query.by))
        after = read_activity_cursor(query.cursor, by, days_within(wanted.since_s, wanted.until_s))
        page = ReplyPage(by, query.limit)
        found = await services.activity.read(
            own.workspace_id, wanted.since_s, wanted.until_s, after="" if by else "".join(after)
        )
        async with aclosing(found.rows):
            total = (
                await sum_groups(found, wanted, page, after)
                if by
                else await list_rows(found, wanted, page, is_first=not after)
            )
        next_ = None if page.next is None else write_activity_cursor(by, page.next)
        if format_ == "csv":
            return csv_reply(
                csv_columns(OpenRouterActivity), map(csv_cells, page.shown), next_=next_
            )
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
        # Serialized here once, because FastAPI would copy and validate the page, which can be
        # large.
        return Response(shown.model_dump_json(), media_type="application/json")

    @router.get("/activity", response_model=ActivityReply, responses=OR_CSV)
    async def show_activity(
        own: OwnThings,
        query: Annotated[ActivityQuery, Query()],
        format_: Annotated[Format, Depends(wanted_format)],
    ) -> Response:
        """List activity for whole UTC days; defaults to the last 30 days.

        Today's figures are at most a minute old.
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
        """List a workspace's activity for whole UTC days; defaults to the last 30 days."""
        await services.find_workspace(workspace_id)
        return await reply(Own(workspace_id=workspace_id), query, format_)

    return router


# A sort key of DynamoDB has at most 1,024 bytes.
_PLACE_BYTES_MAX: Final = 1_000
_DAY: Final = re.compile(r"[0-9]{8}", re.ASCII)
# The names by which rows are grouped, and the position of the last row or sum.
_Cursor = tuple[tuple[str, ...], tuple[str, ...]]


def write_activity_cursor(by: Sequence[str], place: Sequence[str]) -> str:
    """Return the cursor for the page after a position."""
    return urlsafe_b64encode(json.encode((by, place))).decode().rstrip("=")


def read_activity_cursor(
    text: str | None, by: tuple[str, ...], days_s: Sequence[int]
) -> tuple[str, ...]:
    """Return the position after which a page begins; empty for the first page.

    `days_s` are the first seconds of the requested days. Raises RequestError for a cursor from a
    different list.
    """
    if text is None:
        return ()
    try:
        content = urlsafe_b64decode(text.encode() + b"=" * (-len(text) % 4))
        cursor: _Cursor = json.decode(content, type=_Cursor)
    except (ValueError, MsgspecError) as wrong:
        raise _no_such_cursor() from wrong
    of, place = cursor
    if of != by or len(place) != (len(by) or 1) or not (by or _is_row(place[0], days_s)):
        raise _no_such_cursor()
    return place


def _is_row(place: str, days_s: Sequence[int]) -> bool:
    """Return whether a string can be the position of a row on one of these days, or on an earlier
    day.

    At midnight, the default period loses its first day, but the pages of that day can still be
    read.
    """
    day = place.partition("#")[0]
    known = _DAY.fullmatch(day) is not None and len(place.encode()) <= _PLACE_BYTES_MAX
    return known and any(day <= day_of(day_s).replace("-", "") for day_s in days_s[-1:])


def _no_such_cursor() -> RequestError:
    return invalid_request("cursor: this is not a cursor of this list.", "cursor")
