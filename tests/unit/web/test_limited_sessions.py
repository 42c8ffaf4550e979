"""The limits of a session, as its requests meet them in every format.

Keeps C95.
"""

import json
from decimal import Decimal
from typing import Any

import pytest

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.unit.web.test_request_ceilings import PATHS, body
from tollgate.core.limits import SESSION_BUDGET_HEADER, SESSION_REQUESTS_HEADER
from tollgate.core.money.amounts import usd_text
from tollgate.routing.planning.planning_request import draw_key_hash
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

RUN = {"x-session-id": "run-1"}


def key(budget: str | None = None, requests: int | None = None) -> NewKey:
    amount = None if budget is None else Decimal(budget)
    return NewKey(workspace_id="acme", label="k", session_budget=amount, session_requests=requests)


async def ask(home: House, path: str = PATHS[0], tokens: int | None = 100, **sent: Any) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    headers = {"authorization": f"Bearer {home.secret}", **sent.pop("headers", {})}
    content = json.dumps({**body(path, tokens), **sent}).encode()
    return await request(app, "POST", path, headers=headers, body=content)


def spent_status(path: str) -> int:
    # On /responses a spent limit is 429, as with OpenAI.
    return 429 if path == "/v1/responses" else 402


@pytest.mark.parametrize("path", PATHS)
async def test_c95_a_session_ends_at_its_number_of_requests(path: str) -> None:
    home = await house(key=key(requests=2))
    for _ in range(2):
        assert (await ask(home, path, headers=RUN)).status == 200
    refused = await ask(home, path, headers=RUN)

    assert refused.status == spent_status(path)
    limit = refused.error["limit"]
    assert (limit["level"], limit["kind"], limit["limit"]) == ("session", "requests", 2)
    # Records and explanations name the session by the same hash.
    assert limit["id"] == draw_key_hash("run-1")
    assert refused.headers["x-should-retry"] == "false"
    assert (await ask(home, path, headers={"x-session-id": "run-2"})).status == 200


@pytest.mark.parametrize("path", PATHS)
async def test_c95_a_session_never_costs_more_than_its_budget(path: str) -> None:
    home = await house(key=key("0.01"))
    statuses = [(await ask(home, path, headers=RUN)).status for _ in range(200)]
    served = statuses.count(200)
    assert statuses == [200] * served + [spent_status(path)] * (200 - served)
    assert served > 100
    assert home.spent_nano_usd <= 10_000_000
    refused = await ask(home, path, headers=RUN)
    assert (refused.error["limit"]["level"], refused.error["limit"]["limit"]) == ("session", 0.01)
    assert "Of this session's budget of $0.01" in refused.error["message"]


async def test_c95_a_request_that_alone_may_pass_the_budget_is_told_its_bound() -> None:
    home = await house(key=key("0.001"))
    refused = await ask(home, tokens=1_000, headers=RUN)
    assert refused.status == 402
    assert "may cost $0.01" in refused.error["message"]
    assert "the session's budget is $0.001; ask for fewer tokens" in refused.error["message"]
    assert refused.error["limit"]["kind"] == "total"
    assert home.stores.books.sessions_used.by_id == {}


@pytest.mark.parametrize(
    ("of_key", "header", "allowed"), [(3, "1", 1), (1, "3", 1), (None, "2", 2)]
)
async def test_c95_a_header_only_lowers_the_limit_of_the_key(
    of_key: int | None, header: str, allowed: int
) -> None:
    home = await house(key=key(requests=of_key))
    headers = {**RUN, SESSION_REQUESTS_HEADER: header}
    statuses = [(await ask(home, headers=headers)).status for _ in range(allowed + 1)]
    assert statuses == [200] * allowed + [402]


async def test_c95_a_budget_in_a_header_counts_what_the_session_spent_without_it() -> None:
    home = await house(key=key("5"))
    assert (await ask(home, headers=RUN)).status == 200
    # The bound of the second request fits into this budget, but not beside the first one's cost.
    budget = home.record.held_nano_usd + home.record.cost_nano_usd - 1
    refused = await ask(home, headers={**RUN, SESSION_BUDGET_HEADER: usd_text(budget)})
    assert refused.status == 402, refused.body
    assert refused.error["limit"]["level"] == "session"
    assert refused.error["limit"]["remaining"] == float(usd_text(budget - 60_000))
    above = {**RUN, SESSION_BUDGET_HEADER: usd_text(budget + 1)}
    assert (await ask(home, headers=above)).status == 200


@pytest.mark.parametrize("path", PATHS)
async def test_c95_a_request_without_a_session_is_refused_where_sessions_are_limited(
    path: str,
) -> None:
    home = await house(key=key("5"))
    refused = await ask(home, path)
    assert (refused.status, refused.error["param"]) == (400, "session_id")
    assert home.near.requests == []


@pytest.mark.parametrize(
    ("path", "sent"),
    [
        (PATHS[0], {"session_id": "run-1"}),
        (PATHS[1], {"headers": {"x-claude-code-session-id": "run-1"}}),
        (PATHS[2], {"headers": {"session-id": "run-1"}}),
        *((path, {"headers": RUN}) for path in PATHS),
    ],
)
async def test_c95_sessions_are_known_by_what_clients_send(path: str, sent: Any) -> None:
    home = await house(key=key(requests=1))
    assert (await ask(home, path, **sent)).status == 200
    [id_] = home.stores.books.sessions_used.by_id
    assert id_ == f"{home.principal.key_id}#{draw_key_hash('run-1')}"
    assert home.record.trace.draw_key_hash == draw_key_hash("run-1")


async def test_c95_the_session_id_of_the_body_wins_over_the_header() -> None:
    home = await house(key=key(requests=1))
    assert (await ask(home, session_id="run-2", headers=RUN)).status == 200
    [id_] = home.stores.books.sessions_used.by_id
    assert id_.endswith(draw_key_hash("run-2"))


@pytest.mark.parametrize("name", [SESSION_BUDGET_HEADER, SESSION_REQUESTS_HEADER])
@pytest.mark.parametrize("stated", ["", "0", "-1", "1e3", "all", "12345678901"])
async def test_c95_a_malformed_limit_of_a_session_is_refused(name: str, stated: str) -> None:
    home = await house()
    refused = await ask(home, headers={**RUN, name: stated})
    assert (refused.status, refused.error["param"]) == (400, name)


async def test_c95_a_request_that_is_refused_before_its_hold_is_none_of_the_session() -> None:
    home = await house(key=key(requests=1))
    assert (await ask(home, model="acme/none", headers=RUN)).status == 404
    assert (await ask(home, headers=RUN)).status == 200
