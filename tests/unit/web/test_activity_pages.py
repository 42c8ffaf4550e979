"""Activity of any size in pages, and its sums over what is asked for.

Keeps C67.
"""

import csv
import io
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator, Iterable
from typing import Any
from urllib.parse import urlencode

import pytest
from msgspec.structs import replace

from tests.asgi import Exchange
from tests.unit.web.test_api_app import Api, api
from tollgate.core.records.activity import ActivityRow, ActivityStream
from tollgate.core.usage import Usage
from tollgate.web.http.reply import REPLY_BYTES_MAX, size_in_reply
from tollgate.web.records import activity_routes

SINCE = "2026-11-01T00:00:00Z"
UNTIL = "2026-12-01T00:00:00Z"
ROW = ActivityRow(
    day="2026-11-01",
    model="acme/small",
    provider="acme",
    key_id="key",
    key_label="ci",
    labels={"team": "search"},
    requests=1,
    cost_nano_usd=7,
    usage=Usage(uncached_input_tokens=3, output_tokens=2),
)


class GivenRows:
    """Activity of given rows, in the order of their places; implements `ActivityStore.read`."""

    def __init__(self, rows: Iterable[ActivityRow]) -> None:
        self._rows = rows
        self.taken = 0

    async def read(
        self, _workspace_id: str, _since_s: int, _until_s: int, *, after: str = ""
    ) -> ActivityStream:
        return ActivityStream(rows=self._behind(after))

    async def _behind(self, after: str) -> AsyncGenerator[ActivityRow, None]:
        for row in self._rows:
            if not after or row.place > after:
                self.taken += 1
                yield row


def month(days: int, keys: int, **changes: Any) -> list[ActivityRow]:
    """A row for each key and day, in order; each has a cost of its own."""
    return [
        replace(
            ROW,
            day=f"2026-11-{day + 1:02}",
            key_id=f"key{key:05}",
            labels={"team": f"t-{key % 3}"} if key % 4 else {},
            cost_nano_usd=1_000 * day + key,
            **changes,
        )
        for day in range(days)
        for key in range(keys)
    ]


async def serving(rows: Iterable[ActivityRow]) -> Api:
    call = await api()
    call.changes["activity"] = GivenRows(rows)
    return call


async def asked(call: Api, **query: Any) -> Exchange:
    text = urlencode({"since": SINCE, "until": UNTIL, **query}, doseq=True)
    return await call("GET", f"/v1/activity?{text}", key=call.management)


async def pages(call: Api, **query: Any) -> list[Any]:
    found = [(await asked(call, **query)).json]
    while found[-1]["next_cursor"] is not None:
        found.append((await asked(call, **query, cursor=found[-1]["next_cursor"])).json)
    return found


def nano(usd: float) -> int:
    return round(usd * 1e9)


@pytest.mark.parametrize("limit", [1, 4, 9, 100])
async def test_c67_pages_have_each_row_once_and_the_first_their_sum(limit: int) -> None:
    rows = month(3, 3)
    call = await serving(rows)
    found = await pages(call, limit=limit)
    shown = [(it["date"], it["key_id"]) for page in found for it in page["data"]]
    assert shown == [(row.day, row.key_id) for row in rows]
    assert nano(found[0]["total"]) == sum(row.cost_nano_usd for row in rows)
    assert [page["total"] for page in found[1:]] == [None] * (len(found) - 1)


async def test_c67_a_later_page_reads_no_more_than_its_rows() -> None:
    call = await serving(month(10, 10))
    first = (await asked(call, limit=20)).json
    call.changes["activity"].taken = 0
    await asked(call, limit=20, cursor=first["next_cursor"])
    # One more, to know that there is another page.
    assert call.changes["activity"].taken == 21


@pytest.mark.parametrize("format_", ["json", "csv"])
async def test_c67_a_page_ends_where_the_reply_has_no_more_room(format_: str) -> None:
    labels = {f"{name}{'x' * 60}": '"' * 400 for name in "abcd"}
    rows = [replace(row, labels=labels) for row in month(20, 100)]
    call = await serving(rows)
    found, cursor = list[str](), None
    for _ in range(9):
        query = {} if cursor is None else {"cursor": cursor}
        reply = await asked(call, format=format_, **query)
        assert size_in_reply(reply.body) < REPLY_BYTES_MAX
        if format_ == "json":
            found += [it["key_id"] for it in reply.json["data"]]
            cursor = reply.json["next_cursor"]
        else:
            found += [it["key_id"] for it in csv.DictReader(io.StringIO(reply.body.decode()))]
            cursor = reply.headers.get("x-next-cursor")
        if cursor is None:
            break
    assert found == [row.key_id for row in rows]


@pytest.mark.parametrize("by", [["day"], ["key"], ["model"], ["team"], ["day", "team"], ["nobody"]])
@pytest.mark.parametrize("limit", [2, 1_000])
async def test_c67_sums_are_over_all_that_is_not_named(by: list[str], limit: int) -> None:
    rows = [*month(4, 5), *(replace(row, model=None, provider=None) for row in month(2, 2))]
    call = await serving(rows)
    found = await pages(call, by=by, limit=limit)
    shown = [it for page in found for it in page["data"]]

    def place(row: ActivityRow) -> tuple[str | None, ...]:
        fields = {"day": row.day, "key": row.key_id, "model": row.model}
        return tuple(fields[name] if name in fields else row.labels.get(name) for name in by)

    wanted = dict[tuple[str | None, ...], list[int]]()
    for row in rows:
        sums = wanted.setdefault(place(row), [0, 0, 0])
        for at, count in enumerate((1, row.cost_nano_usd, 3)):
            sums[at] += count
    names = {"day": "date", "key": "key_id", "model": "model"}
    assert {
        tuple(it[names[name]] if name in names else it["labels"].get(name) for name in by): [
            it["requests"],
            nano(it["usage"]),
            it["prompt_tokens"],
        ]
        for it in shown
    } == wanted
    assert len(shown) == len(wanted)
    assert {nano(page["total"]) for page in found} == {sum(row.cost_nano_usd for row in rows)}
    for name, field in names.items():
        assert name in by or {it[field] for it in shown} == {None}


async def test_c67_a_sum_by_key_has_the_latest_name_of_the_key() -> None:
    rows = month(3, 1)
    call = await serving([rows[0], replace(rows[1], key_label="nightly"), rows[2]])
    [row] = (await asked(call, by="key")).json["data"]
    assert (row["key_name"], row["labels"], row["date"]) == ("ci", {}, None)


async def test_c67_pages_have_the_rows_that_the_filters_select() -> None:
    call = await serving(month(4, 4))
    found = await pages(call, team="t-1", limit=3)
    shown = [it["labels"]["team"] for page in found for it in page["data"]]
    assert shown == ["t-1"] * 4
    assert nano(found[0]["total"]) == sum(1_000 * day + 1 for day in range(4))


@pytest.mark.parametrize("by", [["day", "key"], ["model", "key"], ["key", "model"]])
async def test_c67_a_renamed_key_has_one_name_in_all_sums(by: list[str]) -> None:
    before = replace(ROW, model="acme/zoom", key_label="ci")
    after = replace(ROW, day="2026-11-02", model="acme/able", key_label="nightly")
    call = await serving([before, after])
    found = (await asked(call, by=by)).json["data"]
    assert [row["key_name"] for row in found] == ["nightly", "nightly"]


async def test_c67_sums_are_of_what_the_filters_select() -> None:
    call = await serving(month(4, 4))
    found = (await asked(call, by="day", team="t-1")).json
    assert [it["requests"] for it in found["data"]] == [1] * 4
    assert nano(found["total"]) == sum(1_000 * day + 1 for day in range(4))


async def test_c67_pages_of_the_default_period_go_on_after_midnight() -> None:
    rows = month(3, 2)
    call = await serving(rows)
    first = (await asked(call, limit=1)).json
    [second] = (await asked(call, limit=1, cursor=first["next_cursor"])).json["data"]
    assert second["key_id"] == rows[1].key_id
    moved = await asked(call, limit=9, cursor=first["next_cursor"], since="2026-11-02T00:00:00Z")
    assert moved.status == 200


def cursor(content: str) -> str:
    return urlsafe_b64encode(content.encode()).decode().rstrip("=")


@pytest.mark.parametrize(
    "query",
    [
        {"cursor": "x"},
        {"cursor": "\u00e4"},
        {"cursor": cursor("[]")},
        {"cursor": cursor('[["day"],["2026-11-01"]]')},
        {"cursor": cursor("[[],[]]")},
        {"cursor": cursor('[[],["20261201#a"]]')},
        {"cursor": cursor('[[],["2026110#a"]]')},
        {"cursor": cursor('[[],["20261101#' + "a" * 999 + '"]]')},
        {"cursor": cursor('[[],["20261101#a"]]'), "by": "day"},
        {"cursor": cursor('[["day"],["2026-11-01"]]'), "by": "model"},
        {"cursor": cursor('[["day"],["2026-11-01","b"]]'), "by": "day"},
        {"cursor": cursor('[["day"],[1]]'), "by": "day"},
        {"cursor": "x" * 5_000},
        {"by": ["a", "b", "c", "d", "e", "f"]},
        {"by": ""},
        {"by": "x" * 129},
        {"limit": 0},
        {"limit": 10_001},
    ],
)
async def test_c67_what_is_no_page_of_activity_is_400(query: dict[str, Any]) -> None:
    call = await serving(month(1, 1))
    reply = await asked(call, **query)
    [name] = {name for name in query if name != "by"} or {"by"}
    assert (reply.status, reply.error["param"].partition("[")[0]) == (400, name)


async def test_c67_more_sums_or_rows_than_one_request_has_are_refused_and_not_cut(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(activity_routes, "GROUPS_MAX", 3)
    monkeypatch.setattr(activity_routes, "ROWS_READ_MAX", 4)
    many, few = await serving(month(1, 4)), await serving(month(1, 3))
    refused = await asked(many, by="key")
    assert (refused.status, refused.error["param"]) == (400, "by")
    assert len((await asked(few, by="key")).json["data"]) == 3
    endless = await serving(month(1, 5))
    for query in ({}, {"by": "model"}):
        refused = await asked(endless, **query)
        assert (refused.status, refused.error["param"]) == (400, "since")
        assert (await asked(many, **query)).status == 200
