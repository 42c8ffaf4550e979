"""Browsers may call the metered route from the allowed origins.

Keeps C45.
"""

from tests.asgi import request
from tests.gateways import house, request_body
from tests.unit.web.test_chat_app import PATH, app_of, post
from tollgate.core.ids import is_id


async def test_c45_browsers_of_an_allowed_origin_may_call_and_read_the_headers() -> None:
    home = await house()
    preflight = await request(
        app_of(home),
        "OPTIONS",
        PATH,
        headers={
            "origin": "https://app.example",
            "access-control-request-method": "POST",
            "access-control-request-headers": "authorization,content-type,x-request-id",
        },
    )
    assert preflight.status == 200
    assert preflight.headers["access-control-allow-origin"] == "https://app.example"
    assert is_id(preflight.headers["x-request-id"])
    for body in (request_body(), b"{"):
        reply = await post(home, body, origin="https://app.example")
        assert reply.headers["access-control-allow-origin"] == "https://app.example"
        exposed = reply.headers["access-control-expose-headers"].split(", ")
        ours = {name for name in reply.headers if name.startswith("x-") or name == "retry-after"}
        assert ours <= set(exposed)


async def test_c45_options_without_an_origin_says_what_is_served() -> None:
    reply = await request(app_of(await house()), "OPTIONS", PATH)
    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers["allow"] == "OPTIONS, POST"
    assert is_id(reply.headers["x-request-id"])
    assert not {"content-type", "content-length"} & set(reply.headers)


async def test_c45_another_origin_is_not_allowed() -> None:
    reply = await post(await house(), request_body(), origin="https://evil.example")
    assert "access-control-allow-origin" not in reply.headers
