"""Browsers may call the metered route from the allowed origins.

Keeps C45.
"""

from collections.abc import Mapping

from tests.asgi import Exchange, request
from tests.gateways import house, request_body, store_is_away
from tests.unit.web.test_chat_app import PATH, app_of, post
from tollgate.core.ids import is_id
from tollgate.engine.replies.kept_answers import REPLAY_HEADER
from tollgate.web.http.csv_reply import csv_reply


def ours(headers: Mapping[str, str]) -> set[str]:
    """The names that a page reads only if they are exposed to it."""
    return {name for name in headers if name.startswith("x-") or name == "retry-after"}


def exposed(reply: Exchange) -> set[str]:
    return set(reply.headers["access-control-expose-headers"].split(", "))


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
        assert ours(reply.headers) <= exposed(reply)


async def test_c43_c45_a_page_reads_that_a_request_must_not_be_repeated() -> None:
    home = await house()
    home.ledger.settle_failure = store_is_away()
    reply = await post(home, request_body(), origin="https://app.example")
    assert (reply.status, reply.headers["x-should-retry"]) == (503, "false")
    assert ours(reply.headers) <= exposed(reply)


async def test_c45_a_page_reads_the_headers_of_tables_and_of_repeated_answers() -> None:
    reply = await post(await house(), request_body(), origin="https://app.example")
    table = csv_reply(["id"], [], next_="more", unreadable=("W#acme G#two",))
    assert {REPLAY_HEADER, *ours(table.headers)} <= exposed(reply)


async def test_c45_options_without_an_origin_says_what_is_served() -> None:
    reply = await request(app_of(await house()), "OPTIONS", PATH)
    assert (reply.status, reply.body) == (204, b"")
    assert reply.headers["allow"] == "OPTIONS, POST"
    assert is_id(reply.headers["x-request-id"])
    assert not {"content-type", "content-length"} & set(reply.headers)


async def test_c45_another_origin_is_not_allowed() -> None:
    reply = await post(await house(), request_body(), origin="https://evil.example")
    assert "access-control-allow-origin" not in reply.headers


async def test_c45_a_reply_to_no_page_says_that_a_page_would_get_another() -> None:
    reply = await post(await house(), request_body())
    assert reply.headers["vary"] == "Origin"
    assert not [name for name in reply.headers if name.startswith("access-control-")]
