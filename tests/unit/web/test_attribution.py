"""What an agent says about itself becomes labels of its records, where routing.yaml reads it.

Keeps C61, C66, C67, C80.
"""

import json
from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError

from tests.asgi import request
from tests.gateways import Always, House, house
from tests.stores import TESTER
from tests.unit.routing.catalogs import routing
from tests.unit.web.test_api_app import Api
from tollgate.core.principal import generation_source
from tollgate.core.records.activity import (
    CALLER_LABELS_MAX,
    OTHERS,
    GenerationFilter,
    summarize_day,
)
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

SOURCES = {
    "session": "header:x-claude-code-session-id",
    "thread": "header:thread-id",
    "device": "metadata:device_id",
}
MESSAGES: Any = {"max_tokens": 9, "messages": [{"role": "user", "content": "Say hello."}]}
BODIES: dict[str, Any] = {
    "/v1/messages": MESSAGES,
    "/v1/responses": {"input": "Say hello."},
    "/v1/chat/completions": {"messages": [{"role": "user", "content": "Say hello."}]},
}
KEY = NewKey(workspace_id="acme", label="ana", labels={"member": "ana"})


async def ask(home: House, path: str, headers: dict[str, str] | None = None, **body: Any) -> None:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    sent = {"x-api-key": home.secret, **(headers or {})}
    whole = {"model": "acme/large", **BODIES[path], **body}
    reply = await request(app, "POST", path, headers=sent, body=json.dumps(whole).encode())
    assert reply.status == 200
    assert "x-tollgate-adapted" not in reply.headers


USER = json.dumps({"device_id": "d-1", "account_uuid": "", "session_id": "s-9"})


@pytest.mark.parametrize(
    ("path", "headers", "body", "labels"),
    [
        (
            "/v1/messages",
            {"x-claude-code-session-id": "s-1"},
            {"metadata": {"user_id": USER}},
            {"session": "s-1", "device": "d-1"},
        ),
        (
            "/v1/responses",
            {"thread-id": "t-1"},
            {"client_metadata": {"device_id": "d-2"}},
            {"thread": "t-1", "device": "d-2"},
        ),
        ("/v1/responses", {}, {"metadata": {"device_id": "d-3"}}, {"device": "d-3"}),
        ("/v1/chat/completions", {}, {"metadata": {"device_id": "d-4"}}, {"device": "d-4"}),
        ("/v1/messages", {}, {"metadata": {"user_id": "{broken"}}, {}),
    ],
)
async def test_c66_headers_and_metadata_of_agents_are_labels_of_the_record(
    path: str, headers: dict[str, str], body: Any, labels: dict[str, str]
) -> None:
    home = await house(key=KEY, attribution=SOURCES)
    await ask(home, path, headers, **body)
    assert home.record.labels == {"member": "ana"}
    assert home.record.caller_labels == labels
    assert home.record.all_labels == {"member": "ana", **labels}


@pytest.mark.parametrize("path", BODIES)
async def test_c66_without_the_setting_nothing_is_kept(path: str) -> None:
    home = await house(key=KEY)
    await ask(home, path, {"x-claude-code-session-id": "s-1", "thread-id": "t-1"})
    assert home.record.all_labels == {"member": "ana"}


@pytest.mark.parametrize("value", ["", "x" * 65, "a#b", "a b", "-", "\u00e4", "a,b", "a\tb"])
async def test_c66_a_value_that_is_no_plain_short_text_is_no_label(value: str) -> None:
    home = await house(key=KEY, attribution=SOURCES)
    await ask(home, "/v1/responses", client_metadata={"device_id": value})
    assert home.record.caller_labels == {}


async def test_c61_a_caller_cannot_state_the_labels_of_its_key() -> None:
    home = await house(key=KEY)
    await ask(home, "/v1/messages")
    stated = {"member": "bob", "session": "s-1"}
    forged = GenerationRecord(**{**_fields(home.record), "caller_labels": stated})
    assert forged.all_labels == {"member": "ana", "session": "s-1"}


async def test_c67_spending_is_asked_by_session() -> None:
    home = await house(key=KEY, attribution=SOURCES)
    for session in ("s-1", "s-2", "s-1"):
        await ask(home, "/v1/messages", {"x-claude-code-session-id": session})
    served = Api(home, "", "")
    key = NewKey(workspace_id="acme", label="r", role="read")
    secret = (await home.stores.keys.create(key, by=TESTER)).secret
    reply = await served("GET", "/v1/activity", key=secret)
    rows = {row["labels"]["session"]: row["requests"] for row in reply.json["data"]}
    assert rows == {"s-1": 2, "s-2": 1}
    assert {row["labels"]["member"] for row in reply.json["data"]} == {"ana"}
    one = await served("GET", "/v1/activity?label=session:s-2", key=secret)
    assert [row["requests"] for row in one.json["data"]] == [1]
    listed = await served("GET", "/v1/generations?label=session:s-1", key=secret)
    assert [each["labels"]["session"] for each in listed.json["data"]] == ["s-1", "s-1"]


async def test_c67_sums_by_session_and_member_have_all_that_their_callers_cost() -> None:
    home = await house(key=KEY, attribution=SOURCES)
    for session in ("s-1", "s-2", "s-1"):
        await ask(home, "/v1/messages", {"x-claude-code-session-id": session})
    await ask(home, "/v1/messages")
    served = Api(home, "", "")
    key = NewKey(workspace_id="acme", label="r", role="read")
    secret = (await home.stores.keys.create(key, by=TESTER)).secret
    found = (await served("GET", "/v1/activity?by=session&by=member", key=secret)).json
    sums = [(row["labels"], row["requests"]) for row in found["data"]]
    assert sums == [
        ({"member": "ana"}, 1),
        ({"member": "ana", "session": "s-1"}, 2),
        ({"member": "ana", "session": "s-2"}, 1),
    ]


async def test_c67_beyond_so_many_sets_of_labels_a_day_new_values_are_others() -> None:
    home = await house(key=KEY, attribution=SOURCES)
    await ask(home, "/v1/messages", {"x-claude-code-session-id": "s"})
    plain = _fields(home.record)
    records = [
        GenerationRecord(**{**plain, "id": f"{n:015d}", "caller_labels": {"session": f"s-{n}"}})
        for n in range(CALLER_LABELS_MAX + 5)
    ]
    rows = summarize_day("2026-11-21", records)
    assert len(rows) == CALLER_LABELS_MAX + 1
    assert sum(row.requests for row in rows) == len(records)
    [rest] = [row for row in rows if row.caller_labels == {"session": OTHERS}]
    assert rest.requests == 5
    assert rows == summarize_day("2026-11-21", reversed(records))
    wanted = GenerationFilter(since_s=0, until_s=1, labels={"session": "s-7", "member": "ana"})
    assert [row.caller_labels for row in rows if row.matches(wanted)] == [{"session": "s-7"}]


@pytest.mark.parametrize("devices", [3, CALLER_LABELS_MAX])
async def test_c67_too_many_sessions_of_a_day_leave_the_spending_of_each_device(
    devices: int,
) -> None:
    home = await house(key=KEY, attribution=SOURCES)
    await ask(home, "/v1/messages", {"x-claude-code-session-id": "s"})
    plain, count = _fields(home.record), 4 * CALLER_LABELS_MAX
    stated = [
        {"session": f"s-{n // 2}", "device": f"d-{n % devices}"} if n % 9 else {}
        for n in range(count)
    ]
    records = [
        GenerationRecord(**{**plain, "id": f"{n:015d}", "caller_labels": labels})
        for n, labels in enumerate(stated)
    ]
    rows = summarize_day("2026-11-21", records)
    assert len(rows) <= 2 * CALLER_LABELS_MAX + 2
    assert sum(row.cost_nano_usd for row in rows) == count * home.record.cost_nano_usd
    assert sum(row.requests for row in rows if not row.caller_labels) == stated.count({})
    if devices == 3:
        asked = Counter(labels["device"] for labels in stated if labels)
        counted = Counter[str]()
        for row in rows:
            if row.caller_labels:
                counted[row.caller_labels["device"]] += row.requests
        assert counted == asked


@pytest.mark.parametrize("sets", [1, 2])
async def test_c67_too_many_sessions_of_a_day_do_not_hide_the_playground(sets: int) -> None:
    home = await house(key=KEY, attribution=SOURCES)
    await ask(home, "/v1/messages", {"x-claude-code-session-id": "s"})
    plain = _fields(home.record)
    stated = [
        {"session": f"s-{n}", "device": f"d-{n}"} for n in range(sets * CALLER_LABELS_MAX + 5)
    ]
    records = [
        GenerationRecord(**{**plain, "id": f"{n:015d}", "caller_labels": labels})
        for n, labels in enumerate([*stated, {"source": "playground", "session": "p"}])
    ]
    rows = summarize_day("2026-11-21", records)
    found = [row for row in rows if generation_source(row.caller_labels) == "playground"]
    assert sum(row.requests for row in found) == 1


def _fields(record: GenerationRecord) -> dict[str, Any]:
    return {name: getattr(record, name) for name in record.__struct_fields__}


@pytest.mark.parametrize(
    "name", ["authorization", "cookie", "proxy-authorization", "x-api-key", "api-key"]
)
def test_c66_no_header_that_carries_a_secret_becomes_a_label(name: str) -> None:
    with pytest.raises(ValidationError, match="carries a secret"):
        routing(attribution={"who": f"header:{name}"})
