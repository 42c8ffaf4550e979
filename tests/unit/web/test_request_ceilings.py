"""A request costs no more than its key's max_cost and its own ceiling, in every format.

Keeps C95.
"""

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.scripted import Scripted, answers
from tests.stores import TESTER
from tests.unit.web.test_api_app import api
from tollgate.core.limits import MAX_COST_HEADER
from tollgate.stores.ports.administration import NewKey
from tollgate.web.api_app import api_app
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

MESSAGES = [{"role": "user", "content": "Say hello."}]
# The same request in three formats, without an output limit, or with `tokens` at most.
PATHS = ("/v1/chat/completions", "/v1/messages", "/v1/responses")


def body(path: str, tokens: int | None) -> dict[str, Any]:
    if path == "/v1/responses":
        fields: dict[str, Any] = {"input": "Say hello.", "max_output_tokens": tokens}
    else:
        fields = {"messages": MESSAGES, "max_tokens": tokens}
    return {"model": "acme/large", **{name: it for name, it in fields.items() if it is not None}}


async def ask(home: House, path: str, tokens: int | None, **headers: str) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    sent = {"authorization": f"Bearer {home.secret}", **headers}
    return await request(
        app, "POST", path, headers=sent, body=json.dumps(body(path, tokens)).encode()
    )


def key(max_cost: str | None) -> NewKey:
    amount = None if max_cost is None else Decimal(max_cost)
    return NewKey(workspace_id="acme", label="k", max_cost=amount)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize(
    ("of_key", "stated", "level", "limit"),
    [
        ("0.002", None, "key", 0.002),
        (None, "0.002", "request", 0.002),
        # The lower one counts: a request cannot raise the ceiling of its key.
        ("0.002", "5", "key", 0.002),
        ("5", "0.002", "request", 0.002),
    ],
)
async def test_c95_a_request_that_may_cost_more_than_its_ceiling_is_refused_by_name(
    path: str, of_key: str | None, stated: str | None, level: str, limit: float
) -> None:
    home = await house(key=key(of_key))
    headers = {} if stated is None else {MAX_COST_HEADER: stated}
    reply = await ask(home, path, 1_000, **headers)

    # On /responses a spent limit is 429, as with OpenAI.
    assert reply.status == (429 if path == "/v1/responses" else 402), reply.body
    found = reply.error["limit"]
    named = home.principal.key_id if level == "key" else MAX_COST_HEADER
    assert (found["level"], found["id"], found["kind"]) == (level, named, "max_cost")
    assert (found["limit"], found["resets_at"]) == (limit, None)
    assert "may cost $0.0" in reply.error["message"]
    field = "max_output_tokens" if path == "/v1/responses" else "max_tokens"
    assert f"is $0.002; ask for fewer tokens with {field}" in reply.error["message"]
    assert home.near.requests == home.far.requests == []
    assert home.stores.books.records == {}


@pytest.mark.parametrize("path", PATHS)
async def test_c95_a_request_within_its_ceilings_is_served(path: str) -> None:
    home = await house(key=key("0.05"))
    reply = await ask(home, path, 1_000, **{MAX_COST_HEADER: "0.04"})
    assert reply.status == 200, reply.body
    assert home.record.held_nano_usd <= 40_000_000


async def test_c95_an_endpoint_over_the_ceiling_leaves_its_turn_to_a_cheaper_model() -> None:
    home = await house()
    reply = await ask_route(home, "smart", **{MAX_COST_HEADER: "0.005"})
    assert reply.status == 200, reply.body
    assert home.record.model == "acme/small"


async def ask_route(home: House, name: str, **headers: str) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    content = json.dumps({"model": name, "messages": MESSAGES, "max_tokens": 500}).encode()
    sent = {"authorization": f"Bearer {home.secret}", **headers}
    return await request(app, "POST", PATHS[0], headers=sent, body=content)


async def test_c95_without_an_output_limit_the_longest_answer_counts() -> None:
    # acme/large answers with 10,000 tokens at most, of $15 a million.
    home = await house()
    refused = await ask(home, PATHS[0], None, **{MAX_COST_HEADER: "0.16"})
    assert refused.status == 402
    served = await ask(home, PATHS[0], None, **{MAX_COST_HEADER: "0.18"})
    assert served.status == 200
    assert home.record.held_nano_usd > 150_000_000


@pytest.mark.parametrize("stream", [False, True])
async def test_c95_no_answer_costs_more_than_its_ceiling_whatever_the_provider_sends(
    stream: bool,
) -> None:
    # 300,000 characters are more tokens than the model's maximum output.
    home = await house(near=Scripted(answers(*["x" * 1_000] * 300)))
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    content = json.dumps({"model": "acme/large", "messages": MESSAGES, "stream": stream}).encode()
    headers = {"authorization": f"Bearer {home.secret}", MAX_COST_HEADER: "0.18"}
    reply = await request(app, "POST", PATHS[0], headers=headers, body=content)

    assert reply.status == 200
    assert (home.record.finish, home.record.outcome) == ("length", "ok")
    assert home.record.cost_nano_usd <= 180_000_000


@pytest.mark.parametrize("stated", ["", "0", "-1", "1e3", "free", "0.0000000001", "12345678", "٣"])
async def test_c95_a_ceiling_that_is_no_amount_is_refused(stated: str) -> None:
    home = await house()
    value = stated.encode().decode("latin-1")
    reply = await ask(home, PATHS[0], 5, **{MAX_COST_HEADER: value})
    assert (reply.status, reply.error["param"]) == (400, MAX_COST_HEADER)


async def test_c95_a_count_of_tokens_is_not_subject_to_the_ceiling() -> None:
    home = await house(key=key("0.000001"))
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    content = json.dumps({"model": "acme/large", "messages": MESSAGES}).encode()
    headers = {"authorization": f"Bearer {home.secret}"}
    reply = await request(app, "POST", "/v1/messages/count_tokens", headers=headers, body=content)
    assert reply.status == 200, reply.body


def _removed(explained: Mapping[str, Any]) -> set[str | None]:
    return {candidate["removed"] for candidate in explained["candidates"]}


async def test_c95_explain_names_the_ceiling() -> None:
    call = await api()
    new = NewKey(workspace_id="acme", label="mine", max_cost=Decimal("0.001"))
    secret = (await call.home.stores.keys.create(new, by=TESTER)).secret
    app = api_app(call.services, WebLimits(), by_topic=True)
    content = json.dumps(body(PATHS[0], 1_000)).encode()
    headers = {"authorization": f"Bearer {secret}", "content-type": "application/json"}
    reply = await request(app, "POST", "/v1/route/explain", headers=headers, body=content)
    assert all("the key's max_cost is $0.001" in str(each) for each in _removed(reply.json))
    stated = {**headers, MAX_COST_HEADER: "0.0005"}
    reply = await request(app, "POST", "/v1/route/explain", headers=stated, body=content)
    assert all("x-tollgate-max-cost is $0.0005" in str(each) for each in _removed(reply.json))


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("stream", [False, True])
async def test_c95_replies_name_a_limit_from_the_share_that_its_key_states(
    path: str, stream: bool
) -> None:
    new = NewKey(workspace_id="acme", label="k", warn_at=50, limits_nano_usd={"day": 5_000_000})
    home = await house(key=new)
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    content = json.dumps({**body(path, 100), "stream": stream}).encode()
    headers = {"authorization": f"Bearer {home.secret}", "origin": "https://app.example"}
    reply = await request(app, "POST", path, headers=headers, body=content)
    assert reply.status == 200
    period, percent = reply.headers["x-tollgate-limit-warning"].split()
    held = home.record.held_nano_usd
    assert (period, percent) == ("day", f"{held // 50_000}%")
    assert "x-tollgate-limit-warning" in reply.headers["access-control-expose-headers"]


async def test_c95_a_quota_for_some_models_is_named_with_its_glob() -> None:
    new = NewKey(workspace_id="acme", label="k", warn_at=1, quotas="usd/hour=0.005@*[aé]*")
    home = await house(key=new)
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    headers = {"authorization": f"Bearer {home.secret}"}
    content = json.dumps(body(PATHS[0], 100)).encode()
    reply = await request(app, "POST", PATHS[0], headers=headers, body=content)
    name, percent = reply.headers["x-tollgate-limit-warning"].split()
    assert (name, percent) == ("hour@*[a%C3%A9]*", f"{home.record.held_nano_usd // 50_000}%")


async def test_c95_a_route_bends_by_what_is_left_of_a_quota() -> None:
    rules = (
        {"if": {"budget_left": "<50%"}, "try": ("acme/small",)},
        {"try": ("acme/large",)},
    )
    home = await house(
        key=NewKey(workspace_id="acme", label="k", quotas="usd/day=0.0001@acme/large"),
        routes={"bends": {"description": "Bends", "rules": rules}},
    )
    for model in ("acme/large", "acme/small"):
        reply = await home.serve("bends")
        assert home.journal.records[-1].model == model
    assert reply.headers["x-tollgate-bend"].startswith("bends rule 1")
