"""The rows or sums of activity for one reply, read row by row."""

from typing import Final

from tollgate.core.errors import invalid_request
from tollgate.core.records.activity import (
    ROWS_READ_MAX,
    ActivityRow,
    ActivityStream,
    GenerationFilter,
)
from tollgate.core.records.activity_groups import ActivityGroups
from tollgate.web.http.reply import REPLY_BYTES_MAX, size_in_reply
from tollgate.web.records.activity_shapes import ActivityObject

# Maximum number of rows in a page.
ROWS_MAX: Final = 10_000
# Space in a reply for everything but the rows: four lists of 400 days, and a cursor.
_REST_BYTES: Final = 50_000
# Maximum number of sums in memory, of half a kilobyte each.
GROUPS_MAX: Final = 50_000


class ReplyPage:
    """The rows of a reply, up to the limit and the maximum size."""

    def __init__(self, by: tuple[str, ...], limit: int | None = None) -> None:
        self.by = by
        self._limit = limit or ROWS_MAX
        self._room = REPLY_BYTES_MAX - _REST_BYTES
        self._last: tuple[str, ...] = ()
        self.shown: list[ActivityObject] = []
        # The place of the page's last row; None until a row does not fit.
        self.next: tuple[str, ...] | None = None

    def add(self, place: tuple[str, ...], row: ActivityRow) -> None:
        """Add the next row; the first row that does not fit ends the page."""
        shown = ActivityObject.of(row, self.by) if self.by else ActivityObject.of(row)
        # Size as JSON, with a comma; a row of CSV is shorter.
        self._room -= size_in_reply(shown.model_dump_json().encode()) + 1
        if self.shown and (self._room < 0 or len(self.shown) == self._limit):
            self.next = self._last
        else:
            self.shown.append(shown)
            self._last = place


async def list_rows(
    found: ActivityStream, wanted: GenerationFilter, page: ReplyPage, *, is_first: bool
) -> int | None:
    """Add the wanted rows to a page; return the sum over all pages, None for a later page.

    A later page has no sum, which would require reading all rows of the other pages again.
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
    """Add the groups after a place to a page; return the sum of all groups."""
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
                    f"by: there are more than {GROUPS_MAX:,} sums. Name fewer fields, fewer days, "
                    "or a filter; without `by`, all rows come in pages.",
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
