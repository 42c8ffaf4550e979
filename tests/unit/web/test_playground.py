"""Playground secrets: what they serve, what they do not, and the source of their records.

Keeps C66, C91.
"""

import asyncio

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always
from tests.stores import TESTER
from tests.unit.web.routes import ROUTES
from tests.unit.web.test_permissions import Tenants, tenants
from tollgate.stores.people.playground import PLAYGROUND_S
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

HELLO = b'{"model": "acme/large", "messages": [{"role": "user", "content": "Hello"}]}'
CHAT = "/v1/chat/completions"


async def generate(them: Tenants, key: str, path: str = CHAT, body: bytes = HELLO) -> Exchange:
    app = chat_app(them.home.front, Always(them.home.gateway), WebLimits())
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    return await request(app, "POST", path, headers=headers, body=body)


async def opened(them: Tenants, caller: str = "acme management") -> str:
    reply = await them.call("POST", "/v1/playground", key=them.secrets[caller])
    assert (reply.status, reply.json["expires_in"]) == (201, PLAYGROUND_S)
    secret: str = reply.json["key"]
    return secret


async def test_c91_a_playground_secret_generates_and_reaches_no_other_route() -> None:
    them = await tenants()
    secret = await opened(them)
    assert (await generate(them, secret)).status == 200
    before = await them.state()
    for method, path, content in (*ROUTES, ("POST", "/v1/playground", None)):
        reply = await them.call(method, path, key=secret, content=content)
        assert (reply.status, reply.error["code"]) == (403, "permission_denied"), (method, path)
        assert "playground" in reply.error["message"]
    assert await them.state() == before


async def test_c66_its_records_and_sums_have_playground_as_their_source() -> None:
    them = await tenants()
    management = them.secrets["acme management"]
    served = await generate(them, await opened(them))
    key = (await them.call("GET", "/v1/key", key=management)).json["data"]
    shown = await them.call(
        "GET", f"/v1/generation?id={served.headers['x-generation-id']}", key=management
    )
    assert (shown.json["data"]["source"], shown.json["data"]["key_id"]) == ("playground", key["id"])
    listed = await them.call("GET", "/v1/generations", key=management)
    assert sorted(it["source"] for it in listed.json["data"]) == ["api", "playground"]
    path = "/v1/generations?label=source:playground"
    assert len((await them.call("GET", path, key=management)).json["data"]) == 1
    summed = await them.call("GET", "/v1/activity?by=source", key=management)
    costs = {it["labels"].get("source"): it["requests"] for it in summed.json["data"]}
    assert costs == {None: 1, "playground": 1}


@pytest.mark.parametrize("caller", ["acme read", "acme viewer", "acme billing"])
async def test_c91_who_may_not_spend_opens_no_playground(caller: str) -> None:
    them = await tenants()
    if caller not in them.secrets:
        await them.sign_in("acme", caller.removeprefix("acme "))  # type: ignore[arg-type]
    reply = await them.call("POST", "/v1/playground", key=them.secrets[caller])
    assert (reply.status, reply.error["code"]) == (403, "permission_denied")


async def test_it_ends_by_itself_after_its_time_and_with_the_session_that_opened_it() -> None:
    them = await tenants()
    await them.sign_in("acme", "developer")
    left, closed = await opened(them, "acme developer"), await opened(them, "acme developer")
    assert (await them.call("DELETE", "/v1/playground", key=closed)).json == {"closed": True}
    assert [(await generate(them, it)).status for it in (left, closed)] == [200, 401]
    await them.call.services.sessions.close(them.secrets["acme developer"], by=TESTER)
    assert (await generate(them, left)).status == 401
    late = await opened(them)
    await asyncio.sleep(PLAYGROUND_S)
    assert (await generate(them, late)).status == 401


async def test_c84_it_starts_no_background_response() -> None:
    them = await tenants()
    body = b'{"model": "acme/large", "input": "Hello", "background": true}'
    reply = await generate(them, await opened(them), "/v1/responses", body)
    assert reply.status in (400, 403)
