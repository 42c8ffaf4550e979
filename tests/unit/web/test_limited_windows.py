"""The quotas of a key, as its requests meet them in every format.

Keeps C92, C95.
"""

import asyncio
from typing import Any

import pytest

from tests.gateways import house
from tests.unit.web.test_api_app import api
from tests.unit.web.test_bends import ask as ask_route
from tests.unit.web.test_limited_sessions import ask, spent_status
from tests.unit.web.test_request_ceilings import PATHS
from tollgate.stores.ports.administration import NewKey

CHAIN = {
    "smart": {"description": "Large, then small", "rules": ({"try": ("acme/large", "acme/small")},)}
}


def key(quotas: str, **settings: Any) -> NewKey:
    return NewKey(workspace_id="acme", label="k", quotas=quotas, **settings)


async def test_c95_one_request_is_named_in_the_singular() -> None:
    home = await house(key=key("requests/hour=1"))
    assert (await ask(home, PATHS[0])).status == 200
    assert "may use 1 request per hour." in (await ask(home, PATHS[0])).error["message"]


@pytest.mark.parametrize("path", PATHS)
async def test_c95_requests_of_an_hour_are_refused_with_their_quota(path: str) -> None:
    home = await house(key=key("requests/hour=2"))
    for _ in range(2):
        assert (await ask(home, path)).status == 200
    refused = await ask(home, path)

    assert refused.status == 429
    limit = refused.error["limit"]
    assert (limit["level"], limit["kind"], limit["per"]) == ("key", "requests", "hour")
    assert (limit["limit"], limit["remaining"], limit["models"]) == (2, 0, None)
    assert limit["resets_at"].endswith(":00:00Z")
    assert 0 < int(refused.headers["retry-after"]) <= 3600
    assert "may use 2 requests per hour. It resets in" in refused.error["message"]
    await asyncio.sleep(3600)
    assert (await ask(home, path)).status == 200


@pytest.mark.parametrize("path", PATHS)
async def test_c95_dollars_of_a_day_for_a_glob_of_models_are_refused(path: str) -> None:
    home = await house(key=key("usd/day=0.0001@acme/*"))
    statuses = [(await ask(home, path)).status for _ in range(5)]
    assert statuses[0] == 200
    assert statuses[-1] == spent_status(path)
    limit = (await ask(home, path)).json["error"]["limit"]
    assert (limit["kind"], limit["per"], limit["models"], limit["limit"]) == (
        "usd",
        "day",
        "acme/*",
        0.0001,
    )


@pytest.mark.parametrize("stream", [False, True])
async def test_c95_a_route_leaves_out_a_model_that_used_up_its_quota(stream: bool) -> None:
    home = await house(key=key("requests/day=1@acme/large"), routes=CHAIN)
    used = [(await ask_route(home, stream=stream)).headers["x-model-used"] for _ in range(3)]
    assert used == ["acme/large", "acme/small", "acme/small"]
    assert home.held_nano_usd == 0


async def test_c92_a_key_shows_each_of_its_quotas() -> None:
    quotas = "tokens/month=1000,usd/hour=5@acme/*"
    call = await api(key=key(quotas))
    assert (await ask(call.home)).status == 200

    shown = (await call("GET", "/v1/key", key=call.home.secret)).json["data"]

    assert shown["quotas"] == quotas
    tokens, dollars = shown["quotas_usage"]
    record = next(iter(call.home.stores.books.records.values()))
    assert (tokens["unit"], tokens["per"], tokens["models"]) == ("tokens", "month", None)
    assert (tokens["limit"], tokens["used"]) == (1000, record.usage.total_tokens)
    assert tokens["resets_at"] > shown["created_at"]
    assert (dollars["unit"], dollars["per"], dollars["models"]) == ("usd", "hour", "acme/*")
    assert (dollars["limit"], dollars["used"]) == (5.0, record.cost_nano_usd / 10**9)


@pytest.mark.parametrize(
    "quotas",
    [
        "requests",
        "requests/hour",
        "requests/hour=0",
        "requests/hour=1.5",
        "requests/year=5",
        "cents/day=5",
        "usd/day=-5",
        "usd/day=1e3",
        "usd/day=0.0000000001",
        "usd/day=5@",
        "usd/day=5,usd/day=6",
        "usd/day=5,,usd/hour=1",
        ",".join(f"requests/hour={n}@m/{n}" for n in range(1, 12)),
        "usd/day=\u0665",
    ],
)
async def test_c95_quotas_that_are_malformed_are_refused(quotas: str) -> None:
    call = await api()
    body = {"name": "new", "quotas": quotas}
    reply = await call("POST", "/v1/keys", key=call.management, content=body)
    assert (reply.status, reply.error["param"]) == (400, "quotas"), reply.body
