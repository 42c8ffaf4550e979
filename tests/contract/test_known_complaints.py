"""Complaints about money that users of other gateways have, tried on this one.

Each test goes through the whole chat app and its stores; the reports it answers are named in it.

Keeps C36, C61, C62, C64, C66.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import pytest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from tests.asgi import Exchange, exchange
from tests.faulty_client import Killed
from tests.gateways import app_over_stores, house, request_body
from tests.meddler import meddled
from tests.scripted import FOREVER, Scripted, answers, refuses, says
from tests.stores import DynamoStores, HandClock, dynamo_stores, funded_key
from tollgate.core.limits import Period
from tollgate.core.records.generation import GenerationRecord
from tollgate.stores.ports.administration import NewKey
from tollgate.stores.records.generations import read_record
from tollgate.stores.rules.sweep import HOLD_LIFETIME_S

# Ten tokens in at one dollar a million, two out at two dollars.
COST_NANO_USD = 14_000
ASKED_AT_ONCE = 24


async def app_over(
    stores: DynamoStores, near: Scripted | None = None, *, by_hand: bool = False
) -> ASGIApp:
    """A chat app of its own over these tables; its clock is theirs if it is moved by hand."""
    home = await house(near=near or Scripted(answers("Hello")))
    clock = stores.clock if by_hand else None
    return app_over_stores(home, stores, clock)


def asked(secret: str, **fields: Any) -> Exchange:
    return exchange(
        "POST",
        "/v1/chat/completions",
        headers={"authorization": f"Bearer {secret}"},
        body=request_body("acme/small", **fields),
    )


def before(app: ASGIApp, words: bytes, do: Callable[[], Awaitable[None]]) -> ASGIApp:
    """The app, with something done just before these words leave."""

    async def watched(scope: Scope, receive: Receive, send: Send) -> None:
        async def sending(message: Message) -> None:
            if words in message.get("body", b""):
                await do()
            await send(message)

        await app(scope, receive, sending)

    return watched


async def records(stores: DynamoStores) -> list[GenerationRecord]:
    found = await stores.client.call("Scan", {"TableName": stores.tables.generations})
    return [read_record(item) for item in found["Items"]]


async def test_c62_check_then_spend_calls_at_once_do_not_pass_the_same_balance(
    honest: DynamoStores,
) -> None:
    """litellm 34732, 40095, 26672: concurrent requests all see the balance that only one has."""
    secret, _ = await funded_key(honest, 1)
    elsewhere = dynamo_stores(honest.client, honest.tables, honest.clock)
    near = Scripted([*says("Hello"), *answers()[1:]])
    apps = [await app_over(stores, near) for stores in (honest, elsewhere)]

    told = await asyncio.gather(
        *(asked(secret).run(apps[place % 2]) for place in range(ASKED_AT_ONCE))
    )

    assert sorted(it.status or 0 for it in told) == [200] + [402] * (ASKED_AT_ONCE - 1)
    assert len(near.requests) == 1, "nothing is asked that is not paid for"


async def test_c64_reservations_do_not_leak_from_what_fails_leaves_or_dies(
    dynamo: DynamoStores,
) -> None:
    """litellm 27639, 30460, 36592: false 429s, because reservations stay that nobody settles."""
    secret, _ = await funded_key(dynamo, 10**9)
    assert (await asked(secret).run(await app_over(dynamo, Scripted(refuses(400))))).status == 400

    sent = asked(secret, stream=True)

    async def leave() -> None:
        sent.leave()

    silent = Scripted([*says("12345678"), FOREVER])
    await sent.run(before(await app_over(dynamo, silent), b"12345678", leave))
    balance = await dynamo.credits.balance("acme")
    assert balance.held_nano_usd == 0

    meddler, dying = meddled(dynamo)

    def dies(payload: Any) -> str:
        if "Item" in payload:
            raise Killed
        return "pass"

    meddler.meddle = dies
    with pytest.raises(Killed):
        await asked(secret).run(await app_over(dying))
    assert (await dynamo.credits.balance("acme")).held_nano_usd > 0
    dynamo.clock.now = datetime.now(UTC).timestamp() + HOLD_LIFETIME_S + 60
    await dynamo.sweeper.run()

    assert await dynamo.credits.balance("acme") == balance
    assert "lost" in {record.outcome for record in await records(dynamo)}


@pytest.mark.parametrize(
    ("period", "last", "first"),
    [
        ("day", "2026-11-21T23:59:59", "2026-11-22T00:00:00"),
        ("week", "2026-11-22T23:59:59", "2026-11-23T00:00:00"),
        ("month", "2026-11-30T23:59:59", "2026-12-01T00:00:00"),
    ],
)
async def test_c61_counters_reset_in_the_second_their_period_begins(
    dynamo: DynamoStores, period: Period, last: str, first: str
) -> None:
    """litellm 7129, 8364, 9098, 24675: counters that never reset, or on the wrong day."""
    limited = NewKey(workspace_id="acme", label="test", limits_nano_usd={period: COST_NANO_USD})
    secret, _ = await funded_key(dynamo, 10**9, limited)
    app = await app_over(dynamo, by_hand=True)
    assert isinstance(dynamo.clock, HandClock)

    dynamo.clock.now = datetime.fromisoformat(f"{last}+00:00").timestamp()
    assert (await asked(secret).run(app)).status == 200
    refused = await asked(secret).run(app)
    dynamo.clock.now = datetime.fromisoformat(f"{first}+00:00").timestamp()
    again = await asked(secret).run(app)

    assert (refused.status, refused.error["code"]) == (402, "key_limit_exceeded")
    assert again.status == 200
    key = (await dynamo.keys.list("acme")).found[0]
    assert key.spent_nano_usd == 2 * COST_NANO_USD


async def test_c36_a_bill_is_not_lost_when_the_client_disconnects(dynamo: DynamoStores) -> None:
    """litellm 13245, 35958: what was streamed is charged by the provider and billed to nobody."""
    secret, _ = await funded_key(dynamo, 10**9)
    sent = asked(secret, stream=True)

    async def leave() -> None:
        sent.leave()

    silent = Scripted([*says("12345678"), FOREVER])
    await sent.run(before(await app_over(dynamo, silent), b"12345678", leave))

    [record] = await records(dynamo)
    assert (record.outcome, record.usage_source) == ("cancelled", "estimated")
    assert record.cost_nano_usd > 0
    balance = await dynamo.credits.balance("acme")
    assert (balance.spent_nano_usd, balance.held_nano_usd) == (record.cost_nano_usd, 0)
    assert silent.open_count == 0


@pytest.mark.parametrize(("stream", "last"), [(True, b"data: [DONE]"), (False, b'"cost"')])
async def test_c66_a_record_is_there_before_the_last_byte_of_its_answer(
    dynamo: DynamoStores, stream: bool, last: bytes
) -> None:
    """Roo-Code 915, gram 978: GET /generation is 404 for a while after the answer."""
    secret, principal = await funded_key(dynamo, 10**9)
    seen: list[GenerationRecord | None] = []
    sent = asked(secret, stream=stream)

    async def look() -> None:
        generation_id = sent.headers["x-generation-id"].removeprefix("gen-")
        seen.append(await dynamo.generations.get(principal.workspace_id, generation_id))

    await sent.run(before(await app_over(dynamo), last, look))

    [record] = seen
    assert record is not None
    assert (record.outcome, record.cost_nano_usd) == ("ok", COST_NANO_USD)
    assert stream or json.loads(sent.body)["usage"]["cost"] == COST_NANO_USD / 1e9
