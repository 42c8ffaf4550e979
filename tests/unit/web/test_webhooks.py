"""Routes of webhooks: what they accept, show once, and hide.

Keeps C90.
"""

from tests.cells import cells
from tests.unit.web.test_api_app import api

HOOK = {"url": "https://hooks.example/tollgate?team=a", "events": ["key.*"]}


async def test_a_webhook_is_made_shown_changed_rotated_and_deleted() -> None:
    call = await api()
    made = await call("POST", "/v1/webhooks", key=call.management, content=HOOK)
    assert made.status == 201
    created = made.json["data"]
    assert created.pop("secret").startswith("whsec_")
    path = f"/v1/webhooks/{created['id']}"
    assert (await call("GET", path, key=call.management)).json["data"] == created
    assert (await call("GET", "/v1/webhooks", key=call.management)).json["data"] == [created]

    changed = await call("PATCH", path, key=call.management, content={"enabled": False})
    assert changed.json["data"] == {**created, "enabled": False}
    rotated = await call("POST", f"{path}/rotate", key=call.management, content={"grace_hours": 1})
    assert rotated.json["data"]["secret"].startswith("whsec_")
    assert rotated.json["data"]["old_secret_expires_at"] is not None

    tried = await call("POST", f"{path}/test", key=call.management)
    assert (tried.json["data"]["status"], tried.json["data"]["answer"]) == (
        "delivered",
        "HTTP 204",
    )
    listed = await call("GET", f"{path}/deliveries", key=call.management)
    assert listed.json["data"] == [tried.json["data"]]
    again = await call("POST", f"{path}/deliveries/evt_test/redeliver", key=call.management)
    assert (again.status, again.json["data"]["status"]) == (202, "pending")

    deleted = await call("DELETE", path, key=call.management)
    assert deleted.json == {"id": created["id"], "deleted": True}
    for method, place in (("GET", path), ("GET", f"{path}/deliveries"), ("POST", f"{path}/test")):
        assert (await call(method, place, key=call.management)).status == 404


@cells(
    ("body", "param"),
    [
        ({"url": "http://hooks.example/"}, "url"),
        ({"url": "https://127.0.0.1/"}, "url"),
        ({"url": "https://[::1]/"}, "url"),
        ({"url": "https://2130706433/"}, "url"),
        ({"url": "https://0x7f.1/"}, "url"),
        ({"url": "https://localhost/"}, "url"),
        ({"url": "https://metadata.google.internal/"}, "url"),
        ({"url": "https://printer.local/"}, "url"),
        ({"url": "https://intranet/"}, "url"),
        ({"url": "https://me:secret@hooks.example/"}, "url"),
        ({"url": "https://hooks.example:99999/"}, "url"),
        ({"url": "https://hooks.example/ é"}, "url"),
        ({"url": "https://" + "a" * 2_000}, "url"),
        ({"url": "https:///x"}, "url"),
        ({"events": []}, "events"),
        ({"events": ["KEY.*"]}, "events[0]"),
        ({"events": ["*"] * 21}, "events"),
        ({"description": "x" * 201}, "description"),
        ({"secret": "mine"}, "secret"),
        ({"url": None}, "url"),
    ],
)
async def test_a_webhook_of_another_form_is_refused_by_its_field(
    body: dict[str, object], param: str
) -> None:
    call = await api()
    refused = await call("POST", "/v1/webhooks", key=call.management, content={**HOOK, **body})
    assert (refused.status, refused.json["error"]["param"]) == (400, param)
    assert "secret@" not in refused.body.decode()


async def test_webhooks_of_another_workspace_are_not_found() -> None:
    call = await api()
    made = await call("POST", "/v1/webhooks", key=call.management, content=HOOK)
    path = f"/v1/webhooks/{made.json['data']['id']}"
    assert (await call("GET", "/v1/webhooks", key=call.stranger)).json["data"] == []
    for method, place, body in (
        ("GET", path, None),
        ("PATCH", path, {"enabled": False}),
        ("DELETE", path, None),
        ("POST", f"{path}/rotate", {}),
        ("POST", f"{path}/test", None),
        ("GET", f"{path}/deliveries", None),
        ("POST", f"{path}/deliveries/evt_test/redeliver", None),
    ):
        assert (await call(method, place, key=call.stranger, content=body)).status == 404, place
