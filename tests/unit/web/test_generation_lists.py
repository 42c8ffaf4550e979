"""Lists of generations and what they add up to, as the api tells them."""

import csv
import io
import re
from decimal import Decimal

import pytest

from tests.asgi import request
from tests.gateways import Always, request_body
from tests.scripted import Scripted, refuses
from tests.stores import TESTER
from tests.unit.web.test_api_app import Api, api
from tests.unit.web.test_permissions import tenants
from tollgate.core.money.amounts import nano_usd
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits
from tollgate.web.http.csv_reply import csv_reply

# Objects and lists of them, which no cell holds.
OBJECTS = {
    "native_usage",
    "cost_lines",
    "server_tool_runs",
    "judgements",
    "reused",
    "shadow",
    "rounds",
    "provider_responses",
    "tokens",
    "trace",
}


async def generation(call: Api) -> GenerationRecord:
    await call.home.serve("acme/small")
    return call.home.journal.records[-1]


async def test_c67_generations_are_listed_newest_first_page_by_page() -> None:
    call = await api()
    made = [await generation(call) for _ in range(3)]
    first = (await call("GET", "/v1/generations?limit=2", key=call.management)).json
    rest = await call("GET", f"/v1/generations?cursor={first['next_cursor']}", key=call.management)

    listed = [it["request_id"] for it in (*first["data"], *rest.json["data"])]
    assert listed == sorted((record.id for record in made), reverse=True)
    assert rest.json["next_cursor"] is None
    assert first["data"][0]["key_name"] == "test"


async def test_c67_a_list_is_a_table_for_whoever_asks_for_csv() -> None:
    call = await api()
    record = await generation(call)
    asked = await call("GET", "/v1/generations?format=csv", key=call.management)
    accepted = await call(
        "GET", "/v1/generations", key=call.management, headers={"accept": "text/csv"}
    )

    assert asked.body == accepted.body
    assert asked.headers["content-type"].startswith("text/csv")
    [row] = csv.DictReader(io.StringIO(asked.body.decode()))
    assert row["id"] == f"gen-{record.id}"
    assert nano_usd(Decimal(row["total_cost"])) == record.cost_nano_usd


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("outcome=ok&cost_min=0.000000001", 1),
        ("outcome=error", 0),
        ("model=test/other", 0),
        ("label=team:search", 0),
        ("key=test", 1),
        ("key=admin", 0),
        ("user=nobody", 0),
        ("since=2020-01-01T00:00:00Z&until=2020-01-02T00:00:00Z", 0),
    ],
)
async def test_c67_a_list_is_narrowed_by_what_is_asked(query: str, count: int) -> None:
    call = await api()
    await generation(call)
    reply = await call("GET", f"/v1/generations?{query}", key=call.management)
    assert (reply.status, len(reply.json["data"])) == (200, count)


async def test_c67_the_generations_of_an_end_user_are_listed_and_exported() -> None:
    call = await api()
    home = call.home
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    for user in ("eve@acme", "bob@acme"):
        headers = {"authorization": f"Bearer {home.secret}"}
        body = request_body(user=user)
        await request(app, "POST", "/v1/chat/completions", headers=headers, body=body)
    path = "/v1/generations?user=eve%40acme"
    listed = (await call("GET", path, key=call.management)).json["data"]
    assert [it["external_user"] for it in listed] == ["eve@acme"]
    table = await call("GET", f"{path}&format=csv", key=call.management)
    assert len(table.body.splitlines()) == 2


@pytest.mark.parametrize(
    ("status", "served"), [(None, "acme/small"), (400, None)], ids=["served", "failed"]
)
async def test_c67_a_generation_is_found_by_the_model_that_was_requested(
    status: int | None, served: str | None
) -> None:
    near = None if status is None else Scripted(refuses(status))
    call = await api(near=near, aliases={"tiny": {"to": "acme/small"}})
    await call.home.serve("tiny")

    found = {}
    for name in ("tiny", "acme/small", "acme/large"):
        reply = await call("GET", f"/v1/generations?model={name}", key=call.management)
        found[name] = [(it["requested_model"], it["model"]) for it in reply.json["data"]]
    mine = [("tiny", served)]
    assert found == {"tiny": mine, "acme/small": mine if served else [], "acme/large": []}


@pytest.mark.parametrize(
    "query",
    ["limit=0", "limit=1001", "outcome=fine", "cursor=x", "label=team", "since=now", "format=xml"],
)
@pytest.mark.parametrize("path", ["/v1/generations", "/v1/activity"])
async def test_c67_what_a_list_cannot_be_narrowed_by_is_400(path: str, query: str) -> None:
    call = await api()
    name = query.partition("=")[0]
    reply = await call("GET", f"{path}?{query}", key=call.management)
    if path == "/v1/activity" and query in ("limit=1001", "outcome=fine"):
        assert reply.status == 200
    else:
        assert (reply.status, reply.error["param"]) == (400, name)
        assert (name != "since") or "must be a time such as 2026-" in reply.error["message"]


@pytest.mark.parametrize("path", ["/v1/generations", "/v1/activity"])
async def test_c67_a_list_of_an_unknown_key_is_an_error_that_suggests(path: str) -> None:
    call = await api()
    await generation(call)
    unknown = await call("GET", f"{path}?key=tset", key=call.management)
    by_id = await call("GET", f"{path}?key={call.home.principal.key_id}", key=call.management)

    assert (unknown.status, unknown.error["param"]) == (404, "key")
    assert unknown.error["message"].endswith("name or id tset. Did you mean test?")
    assert len(by_id.json["data"]) == 1


async def test_c60_a_second_key_of_a_name_is_refused() -> None:
    call = await api()
    made = [
        await call("POST", "/v1/keys", key=call.management, content={"name": "ci"})
        for _ in range(2)
    ]
    other = await call("POST", "/v1/keys", key=call.stranger, content={"name": "ci"})
    changed = await call(
        "PATCH",
        f"/v1/keys/{call.home.principal.key_id}",
        key=call.management,
        content={"name": "ci"},
    )

    assert [it.status for it in (*made, other, changed)] == [201, 400, 201, 400]
    assert made[1].error["param"] == changed.error["param"] == "name"


async def test_c67_activity_is_the_sum_of_what_was_billed() -> None:
    call = await api()
    made = [await generation(call) for _ in range(2)]
    reply = await call("GET", "/v1/activity", key=call.management)
    table = await call("GET", "/v1/activity?format=csv", key=call.management)

    [row] = reply.json["data"]
    cost = sum(record.cost_nano_usd for record in made)
    assert row["requests"] == 2
    assert nano_usd(Decimal(str(reply.json["total"]))) == cost
    [cells] = csv.DictReader(io.StringIO(table.body.decode()))
    assert nano_usd(Decimal(cells["usage"])) == cost
    assert cells["date"] == row["date"]


async def test_c67_formulas_in_a_table_are_text() -> None:
    reply = csv_reply(["name"], [{"name": "=1+1"}])
    assert reply.body == b"name\r\n'=1+1\r\n"


def test_c67_a_table_names_what_it_leaves_out_in_a_header() -> None:
    whole = csv_reply(["id"], [{"id": "one"}])
    short = csv_reply(["id"], [{"id": "one"}], unreadable=("W#acme G#two",))
    assert "x-unreadable" not in whole.headers
    assert short.headers["x-unreadable"] == "W#acme G#two"
    assert short.body == whole.body


@pytest.mark.parametrize("path", ["/v1/generations", "/v1/activity"])
async def test_c67_a_table_is_plain_and_has_the_names_of_the_json(path: str) -> None:
    call = await api()
    await call.home.serve("acme/small")
    listed = (await call("GET", path, key=call.management)).json["data"]
    body = (await call("GET", f"{path}?format=csv", key=call.management)).body.decode()

    head, *lines = body.splitlines()
    [row] = csv.DictReader(io.StringIO(body))
    assert len(lines) == len(listed) == 1
    assert head.split(",") == [name for name, value in listed[0].items() if name not in OBJECTS]
    for name, cell in row.items():
        value = listed[0][name]
        match value:
            case None | {} | []:
                assert cell == "", name
            case bool():
                assert cell == str(value).lower(), name
            case float():
                assert re.fullmatch(r"[0-9]+(\.[0-9]+)?", cell), name
                assert float(cell) == value, name
            case _:
                assert cell == str(value), name


async def test_c67_an_empty_table_has_its_header() -> None:
    call = await api()
    empty = await call("GET", "/v1/generations?format=csv", key=call.management)
    assert empty.body.decode().startswith("id,request_id,upstream_id,created_at,model,")
    assert empty.body.count(b"\n") == 1


async def test_c91_an_inference_key_lists_the_generations_of_itself_alone() -> None:
    them = await tenants()
    new = NewKey(workspace_id="acme", label="second")
    second = (await them.home.stores.keys.create(new, by=TESTER)).secret
    path = "/v1/generations"
    own = (await them.call("GET", path, key=them.home.secret)).json["data"]
    assert [it["key_id"] for it in own] == [them.home.principal.key_id]
    assert (await them.call("GET", path, key=second)).json["data"] == []
    others = await them.call("GET", f"{path}?key={them.home.principal.key_id}", key=second)
    assert (others.status, others.error["param"]) == (404, "key")
    named = await them.call("GET", f"{path}?key=second", key=second)
    assert named.json["data"] == []
