"""A refused key is refused again without a call to the store, for a second at most.

Keeps C9, C62.
"""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace
from typing_extensions import override

from tests.asgi import exchange, request
from tests.gateways import FUNDS_NANO_USD, Always, House, house
from tests.hostile.test_admission import ONE, REFUSALS, SLOW, Body, app_of, refuse, send
from tests.stores import funded_key
from tests.unit.engine.test_speech import OneAnswer
from tests.watched_ledger import WatchedLedger
from tollgate.core.errors import AccessError, ErrorCode, GatewayError
from tollgate.engine.recent_refusals import RecentRefusals
from tollgate.engine.side_thread import LARGE_BYTES
from tollgate.stores.ports.base import Hold
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

GENERAL = ["no credit", "no rate", "locked"]
NEXT_S = 1.01


class Asked(WatchedLedger):
    """Counts the holds that it is asked for."""

    holds = 0

    @override
    async def hold(self, *arguments: Any, **named: Any) -> Hold:
        self.holds += 1
        return await super().hold(*arguments, **named)


async def asked_house() -> tuple[House, Asked]:
    home = await house(key=replace(SLOW, burst=9))
    asked = Asked(home.stores.ledger, [])
    home.gateway = replace(home.gateway, ledger=asked)
    return home, asked


async def exhaust(home: House, why: str) -> None:
    await refuse(home, why)
    if why == "no rate":
        state = home.stores.books.keys[home.principal.key_id]
        now_us = int(home.gateway.clock.now_s() * 1_000_000)
        for _ in range(7):
            state.rate = state.rate.take(state.rate.form(now_us), now_us)


@pytest.mark.parametrize("why", GENERAL)
async def test_c9_a_refusal_is_repeated_without_the_store(why: str) -> None:
    home, asked = await asked_house()
    await exhaust(home, why)
    app = app_of(home)
    replies = [await send(app, home.secret, ONE) for _ in range(20)]
    assert {reply.error["code"] for reply in replies} == {REFUSALS[why]}
    assert asked.holds == 1
    bodies = {reply.body.replace(reply.error["request_id"].encode(), b"") for reply in replies}
    assert len(bodies) == 1
    await asyncio.sleep(NEXT_S)
    await send(app, home.secret, ONE)
    assert asked.holds == 2


async def test_c62_credit_counts_a_second_after_a_refusal_at_the_latest() -> None:
    home, _ = await asked_house()
    app, wallet = app_of(home), home.stores.books.wallets["acme"]
    available, wallet.available = wallet.available, 0
    assert (await send(app, home.secret, ONE)).status == 402
    wallet.available = available
    assert (await send(app, home.secret, ONE)).status == 402
    await asyncio.sleep(NEXT_S)
    assert (await send(app, home.secret, ONE)).status == 200


async def test_c62_a_refused_key_does_not_refuse_others() -> None:
    home, _ = await asked_house()
    await exhaust(home, "no rate")
    app = app_of(home)
    assert (await send(app, home.secret, ONE)).status == 429
    other, _ = await funded_key(home.stores, FUNDS_NANO_USD, replace(SLOW, label="other"))
    assert (await send(app, other, ONE)).status == 200


async def test_c62_a_slot_that_is_freed_counts_at_once() -> None:
    home, _ = await asked_house()
    await refuse(home, "no slot")
    app = app_of(home)
    assert (await send(app, home.secret, ONE)).status == 429
    home.stores.books.keys[home.principal.key_id].holds.clear()
    assert (await send(app, home.secret, ONE)).status == 200


@pytest.mark.parametrize("why", GENERAL)
async def test_c9_a_key_that_was_just_refused_has_no_body_read(why: str) -> None:
    home, _ = await asked_house()
    await exhaust(home, why)
    app = app_of(home)
    await send(app, home.secret, ONE)
    body = Body(LARGE_BYTES)
    headers = {"authorization": f"Bearer {home.secret}"}
    sent = exchange("POST", "/v1/chat/completions", headers=headers, body=body)
    await sent.run(app)
    assert sent.error["code"] == REFUSALS[why]
    # `Exchange` reads one piece of the body in advance.
    assert body.read <= 1


async def test_c68_a_refused_key_still_gets_its_stored_answers() -> None:
    home, _ = await asked_house()
    app = chat_app(home.front, Always(home.gateway), WebLimits(), answers=OneAnswer())
    headers = {"authorization": f"Bearer {home.secret}", "idempotency-key": "one"}
    body = b'{"model":"acme/small","messages":[{"role":"user","content":"Hi"}]}'
    path = "/v1/chat/completions"
    assert (await request(app, "POST", path, headers=headers, body=body)).status == 200
    await exhaust(home, "no rate")
    assert (await send(app, home.secret, ONE)).status == 429
    again = await request(app, "POST", path, headers=headers, body=body)
    assert again.headers["x-idempotent-replay"] == "true"


async def test_c9_a_body_that_is_announced_too_large_is_not_read() -> None:
    home, _ = await asked_house()
    body = Body(2 * LARGE_BYTES)
    limits = WebLimits(body_bytes_max=LARGE_BYTES)
    headers = {"authorization": f"Bearer {home.secret}", "content-length": str(2 * LARGE_BYTES)}
    sent = exchange("POST", "/v1/chat/completions", headers=headers, body=body)
    await sent.run(chat_app(home.front, Always(home.gateway), limits))
    assert (sent.status, sent.error["code"]) == (413, "payload_too_large")
    assert body.read <= 1


async def test_c63_a_repeated_refusal_counts_the_seconds_down() -> None:
    clock = (await house()).gateway.clock
    refusals, refusal = RecentRefusals(), AccessError(ErrorCode.RATE_LIMIT_EXCEEDED, "")
    refusal.is_general, refusal.retry_after_s = True, 30.0
    with pytest.raises(AccessError), refusals.repeating("key", clock):
        raise refusal
    await asyncio.sleep(0.5)
    with pytest.raises(GatewayError) as again:
        refusals.check("key", clock)
    assert again.value.retry_after_s == pytest.approx(29.5, abs=0.01)
    refusal.retry_after_s = 0.2
    await asyncio.sleep(NEXT_S)
    with pytest.raises(AccessError), refusals.repeating("key", clock):
        raise refusal
    await asyncio.sleep(0.3)
    refusals.check("key", clock)
