"""The tokens of a Messages request are counted at no cost, whatever a key has left.

Keeps C2, C8, C40, C80.
"""

import json
from typing import Any

import anthropic
import httpx2
import pytest

from tests.asgi import Exchange, request
from tests.gateways import house
from tests.references import client_requests
from tests.unit.web.test_api_app import Api, api

PATH = "/v1/messages/count_tokens"
HI: Any = {"model": "acme/large", "messages": [{"role": "user", "content": "Hi"}]}


async def ask(served: Api, body: Any) -> Exchange:
    headers = {"x-api-key": served.home.secret}
    return await served("POST", PATH, content=body, headers=headers)


async def count(served: Api, body: Any) -> int:
    reply = await ask(served, body)
    assert (reply.status, reply.headers["x-tollgate-token-count"]) == (200, "estimate")
    counted = reply.json
    assert list(counted) == ["input_tokens"]
    return int(counted["input_tokens"])


async def test_c80_a_count_grows_with_the_prompt_its_system_and_its_tools() -> None:
    served = await api()
    plain = await count(served, HI)
    tool = {"name": "weather", "description": "word " * 200, "input_schema": {"type": "object"}}
    assert 0 < plain < 20
    assert await count(served, HI | {"system": "word " * 400}) >= plain + 400
    assert await count(served, HI | {"tools": [tool]}) >= plain + 200
    assert await count(served, HI | {"max_tokens": 9, "stream": True}) == plain


async def test_c80_a_count_holds_and_records_nothing() -> None:
    served = await api()
    await count(served, HI)
    assert served.home.stores.books.records == {}
    assert served.home.held_nano_usd == served.home.spent_nano_usd == 0


async def test_c80_a_key_without_money_counts_too() -> None:
    home = await house(funds_nano_usd=1)
    assert await count(Api(home, "", ""), HI) > 0


@pytest.mark.parametrize(
    ("change", "status", "type_", "param"),
    [
        ({"messages": []}, 400, "invalid_request_error", "messages"),
        ({"max_tokens": 0}, 400, "invalid_request_error", "max_tokens"),
        ({"model": "nothing"}, 404, "not_found_error", "model"),
    ],
)
async def test_c40_c80_a_fault_is_in_anthropics_envelope(
    change: Any, status: int, type_: str, param: str
) -> None:
    reply = await ask(await api(), HI | change)
    assert (reply.status, reply.error["type"]) == (status, type_)
    assert (reply.json["type"], reply.error["param"]) == ("error", param)


async def test_c2_c40_without_a_key_it_is_401_in_anthropics_envelope() -> None:
    served = await api()
    reply = await request(served.app, "POST", PATH, body=json.dumps(HI).encode())
    assert (reply.status, reply.error["type"]) == (401, "authentication_error")


async def test_c8_a_prompt_of_megabytes_is_counted() -> None:
    long = {"messages": [{"role": "user", "content": "word " * 500_000}]}
    assert await count(await api(), HI | long) > 500_000


async def test_c7_c80_anthropics_client_reads_the_count_and_its_requests_are_taken() -> None:
    served = await api()
    reply = await ask(served, HI)
    client = anthropic.Anthropic(
        api_key="sk-tg-test",
        base_url="http://replay.invalid",
        http_client=httpx2.Client(
            transport=httpx2.MockTransport(lambda _: httpx2.Response(200, content=reply.body))
        ),
    )
    counted = client.messages.count_tokens(model="m", messages=[{"role": "user", "content": "Hi"}])
    assert counted.input_tokens == reply.json["input_tokens"]
    for _, sent in client_requests("/count_tokens"):
        assert await count(served, sent | {"model": "acme/large"}) > 0
