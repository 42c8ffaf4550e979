"""Callers without a valid key are refused with 429 above a pace, by their address.

Keeps C60.
"""

import pytest
from msgspec.structs import replace
from starlette.types import ASGIApp

from tests.asgi import Exchange, exchange
from tests.gateways import Always, House, house
from tests.stores import HandClock
from tests.unit.web.test_api_app import api
from tollgate.core.errors import AccessError
from tollgate.web.api_app import api_app
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits
from tollgate.web.http.unknown_callers import ADDRESSES_MAX, AddressPace

LIMITS = WebLimits(unknown_caller_rpm=3, trusted_proxies=("10.0.0.0/8",))
CHAT = "/v1/chat/completions"
PATHS = (CHAT, "/v1/messages", "/v1/responses")


async def ask(
    app: ASGIApp,
    path: str = CHAT,
    *,
    key: str | None = "sk-tg-nobody",
    peer: str = "192.0.2.7",
    forwarded: str | None = None,
) -> Exchange:
    headers = {} if key is None else {"authorization": f"Bearer {key}"}
    if forwarded is not None:
        headers["x-forwarded-for"] = forwarded
    method = "GET" if path == "/v1/keys" else "POST"
    sent = exchange(method, path, headers=headers, body=b"{}", client=(peer, 5))
    await sent.run(app)
    return sent


def generations(home: House) -> ASGIApp:
    return chat_app(home.front, Always(home.gateway), LIMITS)


@pytest.mark.parametrize("key", [None, "sk-tg-nobody", "nonsense"])
@pytest.mark.parametrize("path", PATHS)
async def test_c60_above_the_pace_a_caller_without_a_key_gets_429(
    path: str, key: str | None
) -> None:
    app = generations(await house())
    assert [(await ask(app, path, key=key)).status for _ in range(4)] == [401, 401, 401, 429]
    refused = await ask(app, path, key=key)
    assert refused.status == 429
    assert refused.headers["retry-after"] == "20"
    assert "without a valid API key" in refused.error["message"]


async def test_c60_a_valid_key_from_the_same_address_is_served() -> None:
    home = await house()
    app = generations(home)
    assert [(await ask(app)).status for _ in range(4)][-1] == 429
    assert (await ask(app, key=home.secret)).status == 400, "the key is valid, the body is not"


async def test_c60_the_other_routes_have_the_pace_too() -> None:
    call = await api()
    app = api_app(call.services, LIMITS)
    statuses = [(await ask(app, "/v1/keys")).status for _ in range(4)]
    assert statuses == [401, 401, 401, 429]
    assert (await ask(app, "/v1/keys", key=call.management)).status == 200


async def test_c60_addresses_are_counted_apart_and_forwarded_ones_only_from_trusted_proxies() -> (
    None
):
    app = generations(await house())
    for _ in range(4):
        last = await ask(app, peer="10.0.0.1", forwarded="192.0.2.1")
    assert last.status == 429
    assert (await ask(app, peer="10.0.0.1", forwarded="192.0.2.2")).status == 401
    # A stranger cannot change its address by the header.
    statuses = [(await ask(app, forwarded=f"192.0.2.{number}")).status for number in range(10, 14)]
    assert statuses == [401, 401, 401, 429]


async def test_c60_without_the_setting_nobody_is_paced() -> None:
    home = await house()
    app = chat_app(home.front, Always(home.gateway), replace(LIMITS, unknown_caller_rpm=0))
    assert {(await ask(app)).status for _ in range(20)} == {401}


def is_refused(pace: AddressPace, address: str) -> bool:
    try:
        pace.count(address)
    except AccessError:
        return True
    return False


def test_c60_a_bucket_refills_in_a_minute() -> None:
    clock = HandClock()
    pace = AddressPace(60, clock)
    assert sum(not is_refused(pace, "192.0.2.1") for _ in range(100)) == 60
    clock.now += 10
    assert sum(not is_refused(pace, "192.0.2.1") for _ in range(100)) == 10
    clock.now += 3_600
    assert sum(not is_refused(pace, "192.0.2.1") for _ in range(100)) == 60


def test_c60_an_ipv6_network_is_one_caller_and_ipv4_has_one_form() -> None:
    pace = AddressPace(1, HandClock())
    assert not is_refused(pace, "2001:db8::1")
    assert is_refused(pace, "2001:db8::2")
    assert not is_refused(pace, "2001:db8:0:1::1")
    assert not is_refused(pace, "192.0.2.1")
    assert is_refused(pace, "::ffff:192.0.2.1")
    assert not is_refused(pace, "192.0.2.2")


def test_c60_the_table_of_addresses_is_bounded() -> None:
    pace = AddressPace(1, HandClock())
    for number in range(ADDRESSES_MAX + 1):
        assert not is_refused(pace, f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}")
    assert not is_refused(pace, "10.0.0.0"), "the oldest one is forgotten"
    assert is_refused(pace, "10.0.0.255")
