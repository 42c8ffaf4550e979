"""Cursors of activity: the row or sum after which a page begins."""

import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Final

from msgspec import MsgspecError, json

from tollgate.core.errors import ErrorCode, RequestError
from tollgate.core.records.activity import day_of

# A sort key of DynamoDB has at most 1,024 bytes.
_PLACE_BYTES_MAX: Final = 1_000
_DAY: Final = re.compile(r"[0-9]{8}", re.ASCII)
# The names by which rows are summed, and the place of the last row or sum.
_Cursor = tuple[tuple[str, ...], tuple[str, ...]]


def write_activity_cursor(by: Sequence[str], place: Sequence[str]) -> str:
    """Return the cursor of the page after a place."""
    return urlsafe_b64encode(json.encode((by, place))).decode().rstrip("=")


def read_activity_cursor(
    text: str | None, by: tuple[str, ...], days_s: Sequence[int]
) -> tuple[str, ...]:
    """Return the place after which a page begins, empty for the first page.

    `days_s` are the first seconds of the requested days. Raises RequestError for a cursor of
    another list.
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
    """Return whether a text may be the place of a row on these days, or on an earlier day.

    At midnight the default period drops its first day, but the pages of that day can still be read.
    """
    day = place.partition("#")[0]
    known = _DAY.fullmatch(day) is not None and len(place.encode()) <= _PLACE_BYTES_MAX
    return known and any(day <= day_of(day_s).replace("-", "") for day_s in days_s[-1:])


def _no_such_cursor() -> RequestError:
    return RequestError(
        ErrorCode.INVALID_REQUEST, "cursor: this is not a cursor of this list.", param="cursor"
    )
