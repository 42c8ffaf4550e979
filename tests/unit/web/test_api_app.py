"""The api routes: what they answer, to whom, and in which envelope.

Keeps C1, C2, C3, C4, C8, C41, C45, C60, C64, C66.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest
from starlette.types import ASGIApp

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house, store_is_away
from tests.memory.answer_cache import MemoryClearableCache
from tests.memory.publications import MemoryPublications
from tests.memory.workspaces import MemoryWorkspaceStore
from tests.stores import TESTER
from tests.unit.web.routes import MANAGEMENT_ROUTES, ROUTES
from tests.unit.web.served_api import served
from tollgate.core.ids import is_id
from tollgate.core.records.generation import GenerationRecord
from tollgate.ingress.formats import Ingresses
from tollgate.stores.ports.administration import GenerationStore, NewKey
from tollgate.web.services import Services

MISSING_STORES = ["contents", "responses", "files", "uploads", "named_files", "answers"]


@dataclass
class Api:
    """The app over a house, with a management key and another workspace's key."""

    home: House
    management: str
    stranger: str
    changes: dict[str, Any] = field(default_factory=dict)

    async def __call__(
        self,
        method: str,
        path: str,
        *,
        key: str | None = None,
        content: object = None,
        raw: bytes | None = None,
        headers: dict[str, str] | None = None,
    ) -> Exchange:
        sent = dict(headers or {})
        if key is not None:
            sent["authorization"] = f"Bearer {key}"
        body = raw if raw is not None else b"" if content is None else json.dumps(content).encode()
        if body:
            sent["content-type"] = "application/json"
        return await request(self.app, method, path, headers=sent, body=body)

    @property
    def app(self) -> ASGIApp:
        return served(self.services)

    @property
    def services(self) -> Services:
        home, known = self.home, Services.__struct_fields__
        services = {
            **dict.fromkeys(MISSING_STORES),
            "answer_cache": MemoryClearableCache(home.stores.books, home.stores.clock),
            "workspaces": MemoryWorkspaceStore(home.stores.books, home.stores.clock),
            **{it: store for it, store in vars(home.stores).items() if it in known},
            "catalogs": Always(home.catalog),
            "publications": MemoryPublications(),
            "formats": Ingresses(home.gateway.ids),
            "ids": home.gateway.ids,
            "journal": home.journal,
            "operator_workspace": "acme",
        }
        return Services(**{**services, **self.changes})


async def api(**sections: Any) -> Api:
    home = await house(**sections)
    secrets = [
        (await home.stores.keys.create(new, by=TESTER)).secret
        for new in (
            NewKey(workspace_id="acme", label="admin", role="management"),
            NewKey(workspace_id="other", label="stranger", role="management"),
        )
    ]
    return Api(home, *secrets)


@pytest.mark.parametrize("authorization", [None, "Bearer", "Bearer sk-tg-nobody", "Basic x"])
async def test_c2_without_a_good_key_a_route_is_401(authorization: str | None) -> None:
    call = await api()
    headers = {} if authorization is None else {"authorization": authorization}
    for method, path, content in ROUTES:
        reply = await call(method, path, content=content, headers=headers)
        refusal = (reply.status, reply.error["code"])
        assert refusal == (401, "invalid_api_key"), (method, path)


async def test_c41_an_inference_key_may_not_administrate() -> None:
    call = await api()
    for method, path, content in MANAGEMENT_ROUTES:
        reply = await call(method, path, content=content, key=call.home.secret)
        refusal = (reply.status, reply.error["code"])
        assert refusal == (403, "permission_denied"), (method, path)


@pytest.mark.parametrize("prefix", ["", "/api"])
@pytest.mark.parametrize("suffix", ["", "/"])
@pytest.mark.parametrize("path", ["/v1/models", "/v1/health/live", "/v1/openapi.json"])
async def test_c1_c3_open_routes_answer_to_every_spelling_without_a_key(
    prefix: str, path: str, suffix: str
) -> None:
    call = await api()
    reply = await call("GET", f"{prefix}{path}{suffix}")
    assert reply.status == 200
    head = await call("HEAD", f"{prefix}{path}{suffix}")
    assert (head.status, head.body) == (200, b"")
    assert head.headers["content-length"] == reply.headers["content-length"]


async def test_c41_a_field_is_told_in_the_words_of_the_chat_route() -> None:
    call = await api()
    missing = await call("GET", "/v1/generation", key=call.management)
    assert (missing.status, missing.error["message"]) == (400, "id is required.")
    unknown = await call("POST", "/v1/keys", key=call.management, content={"name": "a", "x": 1})
    assert unknown.error["message"] == "x is not a field of this request."


@pytest.mark.parametrize(("method", "path"), [("DELETE", "/v1/keys"), ("PUT", "/v1/models")])
async def test_c41_another_method_is_405_in_the_envelope(method: str, path: str) -> None:
    reply = await (await api())(method, path)
    assert (reply.status, reply.error["code"]) == (405, "method_not_allowed")


@pytest.mark.parametrize("content_type", [None, "application/x-www-form-urlencoded", "text/json"])
async def test_a_body_is_json_whatever_its_type_says(content_type: str | None) -> None:
    call = await api()
    headers = {} if content_type is None else {"content-type": content_type}
    sent = {"authorization": f"Bearer {call.management}", **headers}
    reply = await request(call.app, "POST", "/v1/keys", headers=sent, body=b'{"name": "curl"}')
    assert reply.status == 201


async def test_c4_every_reply_names_its_request_and_the_clients() -> None:
    call = await api()
    for path in ("/v1/models", "/v1/nothing", "/v1/key"):
        reply = await call("GET", path, headers={"x-request-id": "mine"})
        assert is_id(reply.headers["x-request-id"])
        assert reply.headers["x-client-request-id"] == "mine"


async def test_c60_a_key_is_made_shown_once_listed_and_disabled() -> None:
    call = await api()
    limits = {"day": 0.1, "total": "12.000000001"}
    made = await call(
        "POST",
        "/v1/keys",
        key=call.management,
        content={
            "name": "new",
            "limits": limits,
            "models": ["acme/*"],
            "expires_at": "2040-01-01T00:00:00+02:00",
        },
    )
    assert made.status == 201
    secret, shown = made.json["key"], made.json["data"]
    assert shown["label"] == f"sk-tg-…{secret[-4:]}"
    assert (shown["role"], shown["disabled"]) == ("inference", False)
    assert shown["limits"] == shown["limits_remaining"] == {"day": 0.1, "total": 12.000000001}
    assert shown["expires_at"] == "2039-12-31T22:00:00Z"
    listed = await call("GET", "/v1/keys", key=call.management)
    assert shown in listed.json["data"]
    assert secret.encode() not in listed.body
    own = (await call("GET", "/v1/key", key=secret)).json["data"]
    assert own.pop("last_used_at") is not None
    assert (own.pop("levels"), own.pop("tightest")["remaining"]) == ([], 0.1)
    assert own == {name: it for name, it in shown.items() if name != "last_used_at"}
    path = f"/v1/keys/{shown['id']}"
    disabled = await call("PATCH", path, key=call.management, content={"disabled": True})
    assert disabled.json["data"]["disabled"] is True
    assert (await call("GET", "/v1/key", key=secret)).status == 401


async def test_c60_the_keys_of_another_workspace_are_not_there() -> None:
    call = await api()
    path = f"/v1/keys/{call.home.principal.key_id}"
    for path_ in (path, "/v1/keys/nothing", "/v1/keys/%C3%A9"):
        reply = await call("PATCH", path_, key=call.stranger, content={"disabled": True})
        assert (reply.status, reply.error["param"]) == (404, "key_id")
    ids = {key["id"] for key in (await call("GET", "/v1/keys", key=call.stranger)).json["data"]}
    assert call.home.principal.key_id not in ids
    assert (await call("GET", "/v1/key", key=call.home.secret)).status == 200


@pytest.mark.parametrize(
    ("content", "param"),
    [
        ({}, "name"),
        ({"name": ""}, "name"),
        ({"name": "x", "role": "root"}, "role"),
        ({"name": "x", "limits": {"day": -1}}, "limits.day"),
        ({"name": "x", "limits": {"day": 0.0000000001}}, "limits.day"),
        ({"name": "x", "limits": {"year": 1}}, "limits.year"),
        ({"name": "x", "requests_per_minute": 0}, "requests_per_minute"),
        ({"name": "x", "expires_at": "2040-01-01T00:00:00"}, "expires_at"),
        ({"name": "x", "expires_at": "9999-12-31T23:59:59-14:00"}, "expires_at"),
        ({"name": "x", "expires_at": "0001-01-01T00:00:00+14:00"}, "expires_at"),
        ({"name": "x", "colour": "red"}, "colour"),
        ({"name": "x", "\ud800": 1}, None),
        ({"name": "x", "limits": {"\ud800": 1}}, "limits"),
        ({"name": "\ud800"}, "name"),
        ([], None),
    ],
)
async def test_c41_a_body_that_is_wrong_is_400_and_names_its_field(
    content: object, param: str | None
) -> None:
    call = await api()
    reply = await call("POST", "/v1/keys", key=call.management, content=content)
    assert (reply.status, reply.error["code"]) == (400, "invalid_request")
    assert reply.error["param"] == param


@pytest.mark.parametrize(
    "raw", [b"{", b"\xff", b'{"name": 1e400}', b"[" * 900, b"[" * 9_000, b"9" * 5_000]
)
async def test_c8_a_body_that_is_no_json_is_400(raw: bytes) -> None:
    call = await api()
    reply = await call("POST", "/v1/keys", key=call.management, raw=raw)
    assert (reply.status, reply.error["code"]) == (400, "invalid_request")


async def test_c8_a_body_over_the_limit_is_413() -> None:
    call = await api()
    reply = await call(
        "POST",
        "/v1/keys",
        raw=b" " * 1_000_001,
        key=call.management,
        headers={"origin": "https://app.example"},
    )
    assert (reply.status, reply.error["code"]) == (413, "payload_too_large")
    assert reply.headers["access-control-allow-origin"] == "https://app.example"


async def test_c64_credits_are_granted_once_a_name_and_add_up() -> None:
    call = await api()
    await call.home.serve()
    grant = {"id": "invoice-7", "amount": "0.000000001", "note": "paid"}
    first = await call("POST", "/v1/credits/grants", key=call.management, content=grant)
    again = await call("POST", "/v1/credits/grants", key=call.management, content=grant)
    assert (first.json["granted"], again.json["granted"]) == (True, False)
    shown = (await call("GET", "/v1/credits", key=call.management)).json["data"]
    assert first.json["data"] == again.json["data"] == shown
    assert shown == {
        "total_credits": 1000.000000001,
        "total_usage": 0.00006,
        "available": 999.999940001,
        "held": 0.0,
        "credit_limit": 0.0,
        "owed": 0.0,
        "expiring": [],
    }
    theirs = await call("GET", "/v1/credits", key=call.stranger)
    assert theirs.json["data"]["total_credits"] == 0


@pytest.mark.parametrize(
    ("path", "amount"), [("grants", "2"), ("adjustments", "1"), ("adjustments", "-1")]
)
async def test_c64_a_name_used_again_for_another_entry_is_refused_and_adds_nothing(
    path: str, amount: str
) -> None:
    call = await api()
    grant = {"id": "invoice-7", "amount": "1", "note": "paid"}
    await call("POST", "/v1/credits/grants", key=call.management, content=grant)
    other = {**grant, "amount": amount}
    reply = await call("POST", f"/v1/credits/{path}", key=call.management, content=other)
    assert (reply.status, reply.error["code"]) == (422, "idempotency_conflict")
    assert reply.error["message"] == (
        "invoice-7 is the id of a grant of $1 that exists already; nothing was added."
    )
    worded = {**grant, "note": "paid at last"}
    again = await call("POST", "/v1/credits/grants", key=call.management, content=worded)
    assert (again.json["granted"], again.json["data"]["total_credits"]) == (False, 1001)


@pytest.mark.parametrize(
    "grant",
    [
        {"id": "", "amount": 1},
        {"id": "a b", "amount": 1},
        {"id": "g", "amount": 0},
        {"id": "g", "amount": "NaN"},
        {"id": "g", "amount": 1_000_001},
        {"id": "g", "amount": "0.0000000001"},
    ],
)
async def test_c64_a_grant_has_a_name_and_an_exact_amount(grant: object) -> None:
    call = await api()
    reply = await call("POST", "/v1/credits/grants", key=call.management, content=grant)
    assert reply.status == 400


async def test_c66_a_generation_is_shown_by_its_bare_and_its_prefixed_id() -> None:
    call = await api()
    await call.home.serve("smart")
    record = call.home.record
    for prefix in ("", "gen-", "resp_", "msg_"):
        reply = await call("GET", f"/v1/generation?id={prefix}{record.id}", key=call.home.secret)
        assert reply.status == 200
    shown = reply.json["data"]
    assert (shown["id"], shown["request_id"]) == (f"gen-{record.id}", record.id)
    assert (shown["requested_model"], shown["model"], shown["route"]) == (
        "smart",
        "acme/small",
        "smart",
    )
    assert shown["total_cost"] == 0.000014
    assert [line["cost"] for line in shown["cost_lines"]] == [0.00001, 0.000004]
    assert shown["cost_micro_usd"] == "14.000"
    assert (shown["tokens_prompt"], shown["tokens_completion"]) == (10, 2)
    assert shown["native_usage"]["total_tokens"] == 12
    assert [attempt["provider_name"] for attempt in shown["provider_responses"]] == ["near"]


async def test_c66_the_generation_of_another_workspace_is_not_there() -> None:
    call = await api()
    await call.home.serve()
    for id_ in (call.home.record.id, "nothing", "gen-Na1b2c3d4e5f6g7", "%ff", ""):
        reply = await call("GET", f"/v1/generation?id={id_}", key=call.stranger)
        assert (reply.status, reply.error["param"]) == (404, "id")
    missing = await call("GET", "/v1/generation", key=call.stranger)
    assert (missing.status, missing.error["param"]) == (400, "id")


class AwayGenerations:
    """A store that cannot be reached."""

    async def get(self, workspace_id: str, generation_id: str) -> GenerationRecord | None:
        raise store_is_away()


class BrokenGenerations:
    """A store with a defect."""

    async def get(self, workspace_id: str, generation_id: str) -> GenerationRecord | None:
        raise KeyError("the details")


async def test_c3_ready_fails_when_the_store_is_away_and_live_does_not() -> None:
    call = await api()
    assert (await call("GET", "/v1/health/ready")).status == 200
    call.changes["generations"] = AwayGenerations()
    ready = await call("GET", "/v1/health/ready")
    assert (ready.status, ready.error["code"]) == (503, "service_unavailable")
    assert ready.headers["retry-after"] == "5"
    live = await call("GET", "/v1/health/live")
    assert live.json == {"status": "ok", "catalog_sha": call.home.catalog.sha}


@pytest.mark.parametrize("store", [AwayGenerations, BrokenGenerations])
async def test_c41_c45_a_failure_has_the_envelope_its_id_and_cors(
    store: Callable[[], GenerationStore],
) -> None:
    call = await api()
    call.changes["generations"] = store()
    reply = await call("GET", "/v1/health/ready", headers={"origin": "https://app.example"})
    assert reply.status in (500, 503)
    assert reply.error["request_id"] == reply.headers["x-request-id"]
    assert reply.headers["access-control-allow-origin"] == "https://app.example"
    assert b"details" not in reply.body
    defects = [request_id for _, request_id in call.home.journal.defects]
    assert defects == ([reply.headers["x-request-id"]] if reply.status == 500 else [])


@pytest.mark.parametrize("path", ["/v1/keys", "/v1/credits", "/v1/models", "/v1/nothing"])
async def test_c45_a_preflight_is_answered_on_every_route(path: str) -> None:
    reply = await (await api())(
        "OPTIONS",
        path,
        headers={
            "origin": "https://app.example",
            "access-control-request-method": "PATCH",
            "access-control-request-headers": "authorization",
        },
    )
    assert reply.status == 200
    assert reply.headers["access-control-allow-origin"] == "https://app.example"
    assert "PATCH" in reply.headers["access-control-allow-methods"]
    assert is_id(reply.headers["x-request-id"])
