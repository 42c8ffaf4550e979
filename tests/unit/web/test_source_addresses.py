"""A key is used from the networks that it and its workspace admit, on each app.

Keeps C60.
"""

import json
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always
from tests.stores import TESTER
from tests.unit.web.test_api_app import Api, api
from tests.unit.web.test_chat_app import PATH
from tollgate.stores.ports.administration import NewKey, WorkspaceSettings
from tollgate.web.api_app import api_app
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

HERE, THERE, PROXY = "192.0.2.7", "198.51.100.1", "10.0.0.1"
CHAT = {"model": "acme/small", "messages": [{"role": "user", "content": "Hi"}]}


class Doors:
    """The two apps, as a caller at an address reaches them."""

    def __init__(self, call: Api, trusted: tuple[str, ...] = ()) -> None:
        self.call = call
        self.limits = WebLimits(trusted_proxies=trusted)

    async def ask(
        self, secret: str, peer: str | None, *, forwarded: str | None = None, chat: bool = False
    ) -> Exchange:
        headers = {"authorization": f"Bearer {secret}"}
        if forwarded is not None:
            headers["x-forwarded-for"] = forwarded
        client = None if peer is None else (peer, 1)
        home = self.call.home
        if chat:
            app: Any = chat_app(home.front, Always(home.gateway), self.limits)
            body = json.dumps(CHAT).encode()
            return await request(app, "POST", PATH, headers=headers, body=body, client=client)
        app = api_app(self.call.services, self.limits, by_topic=True)
        return await request(app, "GET", "/v1/key", headers=headers, client=client)


async def key(call: Api, allowed_ips: str | None) -> str:
    new = NewKey(workspace_id="acme", label="k", allowed_ips=allowed_ips)
    return (await call.home.stores.keys.create(new, by=TESTER)).secret


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(
    ("of_key", "of_workspace", "peer", "admitted"),
    [
        (None, None, THERE, True),
        (None, None, None, True),
        ("192.0.2.0/24", None, HERE, True),
        ("192.0.2.0/24", None, THERE, False),
        ("192.0.2.0/24", None, None, False),
        (None, "192.0.2.0/24", HERE, True),
        (None, "192.0.2.0/24", THERE, False),
        # Both lists count.
        ("192.0.2.7", "198.51.100.0/24", HERE, False),
        ("192.0.2.7", "192.0.2.0/24", HERE, True),
    ],
)
async def test_c60_a_key_is_refused_from_other_networks(
    of_key: str | None, of_workspace: str | None, peer: str | None, admitted: bool, chat: bool
) -> None:
    call = await api()
    settings = WorkspaceSettings(allowed_ips=of_workspace)
    await call.services.workspaces.create("acme", settings, by=TESTER)
    reply = await Doors(call).ask(await key(call, of_key), peer, chat=chat)
    if admitted:
        assert reply.status == 200, reply.body
    else:
        assert (reply.status, reply.error["code"]) == (403, "permission_denied")
        assert f"may not be used from {peer or 'this address'}" in reply.error["message"]


@pytest.mark.parametrize("chat", [False, True])
@pytest.mark.parametrize(
    ("trusted", "peer", "forwarded", "admitted"),
    [
        ((), PROXY, HERE, False),
        (("10.0.0.0/8",), PROXY, HERE, True),
        (("10.0.0.0/8",), PROXY, f"{THERE}, {HERE}", True),
        (("10.0.0.0/8",), PROXY, f"{HERE}, {THERE}", False),
        (("10.0.0.0/8",), PROXY, f"{HERE}, nonsense", False),
        (("10.0.0.0/8",), THERE, HERE, False),
    ],
)
async def test_c60_a_forwarded_address_counts_only_from_a_trusted_proxy(
    trusted: tuple[str, ...], peer: str, forwarded: str, admitted: bool, chat: bool
) -> None:
    call = await api()
    doors = Doors(call, trusted)
    reply = await doors.ask(await key(call, HERE), peer, forwarded=forwarded, chat=chat)
    assert (reply.status == 200) is admitted, reply.body


@pytest.mark.parametrize("chat", [False, True])
async def test_c60_the_address_of_the_last_use_is_shown_where_the_key_keeps_it(chat: bool) -> None:
    call = await api()
    doors = Doors(call, ("10.0.0.0/8",))
    for number, (kept, shown) in enumerate(((None, None), ("last", HERE))):
        made = {"name": f"key {number}", "keep_address": kept}
        created = (await call("POST", "/v1/keys", key=call.management, content=made)).json
        await doors.ask(created["key"], PROXY, forwarded=HERE, chat=chat)
        path = f"/v1/keys/{created['data']['id']}"
        data = (await call("GET", path, key=call.management)).json["data"]
        assert (data["keep_address"], data["last_address"]) == (kept, shown)
        assert (data["last_address_at"] is None) is (shown is None)
    wrong = {"name": "n", "keep_address": "all"}
    reply = await call("POST", "/v1/keys", key=call.management, content=wrong)
    assert (reply.status, reply.error["param"]) == (400, "keep_address")


async def test_c60_malformed_networks_are_refused_by_the_routes() -> None:
    call = await api()
    for method, path, body in (
        ("POST", "/v1/keys", {"name": "n", "allowed_ips": "10.0.0.1/8"}),
        ("POST", "/v1/workspaces", {"id": "new", "allowed_ips": "nonsense"}),
    ):
        reply = await call(method, path, key=call.management, content=body)
        assert (reply.status, reply.error["param"]) == (400, "allowed_ips")
    made = {"name": "n", "allowed_ips": "10.0.0.0/8,2001:db8::/32"}
    reply = await call("POST", "/v1/keys", key=call.management, content=made)
    assert reply.json["data"]["allowed_ips"] == made["allowed_ips"]


async def test_c60_a_caller_does_not_lock_itself_out() -> None:
    call = await api()
    call.changes["workspaces"] = call.services.workspaces
    await call.services.workspaces.create("acme", WorkspaceSettings(), by=TESTER)
    path, body = "/v1/workspaces/acme", {"allowed_ips": "198.51.100.0/24"}
    refused = await call("PATCH", path, key=call.management, content=body)
    assert (refused.status, refused.error["param"]) == (400, "allowed_ips")
    own = (await call("GET", "/v1/key", key=call.management)).json["data"]["id"]
    refused = await call("PATCH", f"/v1/keys/{own}", key=call.management, content=body)
    assert (refused.status, refused.error["param"]) == (400, "allowed_ips")
    body = {"allowed_ips": "127.0.0.0/8"}
    assert (await call("PATCH", path, key=call.management, content=body)).status == 200
    key_id = call.home.principal.key_id
    body = {"allowed_ips": "198.51.100.0/24"}
    changed = await call("PATCH", f"/v1/keys/{key_id}", key=call.management, content=body)
    assert changed.status == 200
