"""A route bends to cheaper models while little of a limit is left, and says so.

Keeps C95.
"""

import json
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.unit.web.test_api_app import Api, api
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

LIMIT_NANO_USD = 100_000_000
KEY = NewKey(workspace_id="acme", label="k", limits_nano_usd={"month": LIMIT_NANO_USD})
BENT = {
    "smart": {
        "description": "Large, and small near the end of a budget",
        "rules": (
            {"if": {"budget_left": "<20%"}, "try": ("acme/small",)},
            {"try": ("acme/large",)},
        ),
    }
}
MESSAGES = [{"role": "user", "content": "Say hello."}]


async def ask(home: House, name: str = "smart", **fields: Any) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    sent = {"authorization": f"Bearer {home.secret}"}
    content = json.dumps({"model": name, "messages": MESSAGES, "max_tokens": 50, **fields})
    return await request(app, "POST", "/v1/chat/completions", headers=sent, body=content.encode())


async def spend(home: House, percent: int) -> None:
    await home.gateway.ledger.hold(home.principal, LIMIT_NANO_USD * percent // 100)


@pytest.mark.parametrize("stream", [False, True])
async def test_c95_a_rule_bends_a_route_below_the_share_that_it_states(stream: bool) -> None:
    home = await house(key=KEY, routes=BENT)
    await spend(home, 80)
    # 20 % is left.
    whole = await ask(home, stream=stream)
    assert (whole.status, whole.headers["x-model-used"]) == (200, "acme/large")
    assert "x-tollgate-bend" not in whole.headers
    bent = await ask(home, stream=stream)
    assert (bent.status, bent.headers["x-model-used"]) == (200, "acme/small")
    assert bent.headers["x-tollgate-bend"] == "smart rule 1; 19% left"
    traces = [record.trace for record in home.stores.books.records.values()]
    assert [(it.rule, it.budget_left_percent) for it in traces] == [(2, 20), (1, 19)]


async def test_c95_another_rule_and_a_model_by_its_name_bend_nothing() -> None:
    home = await house(key=KEY, routes=BENT)
    await spend(home, 90)
    reply = await ask(home, "acme/large")
    assert reply.headers["x-model-used"] == "acme/large"
    assert "x-tollgate-bend" not in reply.headers


async def test_c95_a_key_without_a_limit_has_no_budget_of_which_little_is_left() -> None:
    home = await house(key=NewKey(workspace_id="acme", label="k"), routes=BENT)
    assert (await ask(home)).headers["x-model-used"] == "acme/large"
    [record] = home.stores.books.records.values()
    assert record.trace.budget_left_percent is None


@pytest.mark.parametrize(
    ("query", "rule"), [("", 2), ("?budget_left=20", 2), ("?budget_left=19", 1)]
)
async def test_c53_an_explanation_takes_the_share_that_is_stated(query: str, rule: int) -> None:
    call: Api = await api(routes=BENT)
    body = {"model": "smart", "messages": MESSAGES}
    reply = await call("POST", f"/v1/route/explain{query}", key=call.home.secret, content=body)
    assert reply.json["rule"] == rule
    reasons = [each["reason"] for each in reply.json["skipped"]]
    left = "20% of the budget left" if query else "no budget is known"
    assert reasons == ([] if rule == 1 else [f"{left}, not under 20%"])


async def test_c53_a_share_over_a_hundred_percent_is_refused() -> None:
    call = await api(routes=BENT)
    body = {"model": "smart", "messages": MESSAGES}
    path = "/v1/route/explain?budget_left=101"
    assert (await call("POST", path, key=call.home.secret, content=body)).status == 400
