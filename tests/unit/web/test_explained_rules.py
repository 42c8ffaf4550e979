"""An explanation names the rules that would apply: quotas, a candidate catalog, bends and orders.

Keeps C53, C107.
"""

import pytest
from msgspec.structs import replace

from tests.gateways import Always
from tests.memory.publications import MemoryPublications
from tests.unit.web.test_api_app import Api, api
from tests.unit.web.test_bends import BENT
from tests.unit.web.test_explanations import PATH, ask, considered
from tests.unit.web.test_limited_windows import CHAIN
from tests.unit.web.test_measured_explanations import measure
from tollgate.cli.routing.explanation import render_explanation
from tollgate.core.routing.publication import Signature, publish_canary, publish_to_all
from tollgate.stores.ports.administration import NewKey

BY = Signature(by="somebody", at_s=1)


async def with_quotas(quotas: str) -> Api:
    return await api(key=NewKey(workspace_id="acme", label="k", quotas=quotas), routes=CHAIN)


async def test_c107_quotas_that_count_a_request_are_explained_with_their_use() -> None:
    call = await with_quotas("usd/day=5@acme/*,requests/hour=2,tokens/day=9@other/*")
    await call.home.serve()
    reply = await ask(call, "smart")
    dollars, requests = reply.json["quotas"]
    assert (dollars["unit"], dollars["models"], dollars["used_up"]) == ("usd", "acme/*", False)
    assert 0 < dollars["used"] < 0.01
    assert (requests["limit"], requests["used"], requests["used_up"]) == (2, 1, False)
    lines = render_explanation(reply.json)
    assert any("Quota 2 requests per hour: 1 used until" in each for each in lines)
    assert any(each.startswith("Quota $5.000 per day of acme/*: $0.0") for each in lines)


async def test_c107_a_model_whose_quota_is_used_up_is_explained_as_left_out() -> None:
    call = await with_quotas("requests/day=1@acme/large")
    await call.home.serve()
    reply = await ask(call, "smart")
    reason = "has used up the quota requests/day=1@acme/large"
    large = [each["removed"] for each in reply.json["candidates"] if each["model"] == "acme/large"]
    assert set(large) == {reason}
    assert [it for it in considered(reply) if it[0]] == [(1, "near/small-1", None)]
    assert reply.json["error"] is None
    assert any("it is used up" in each for each in render_explanation(reply.json))


async def test_c107_a_request_that_a_quota_would_refuse_is_explained_as_refused() -> None:
    call = await with_quotas("requests/day=1")
    await call.home.serve()
    reply = await ask(call, "smart")
    assert reply.json["error"]["code"] == "rate_limit_exceeded"
    assert (reply.json["hold"], {it["attempt"] for it in reply.json["candidates"]}) == (
        None,
        {None},
    )


@pytest.mark.parametrize("serves", [False, True])
async def test_c107_a_candidate_catalog_is_explained_with_its_share(serves: bool) -> None:
    call = await api()
    live = publish_to_all(None, "a" * 64, BY)
    catalog = call.home.catalog.as_candidate() if serves else call.home.catalog
    call.changes = {
        "publications": MemoryPublications(live, publish_canary(live, "b" * 64, 10, BY)),
        "catalogs": Always(replace(catalog)),
    }
    reply = await ask(call, "acme/large")
    assert reply.json["candidate"] == {"catalog_sha": "b" * 64, "percent": 10, "serves": serves}
    verb = "serves" if serves else "does not serve"
    line = f"The candidate catalog bbbbbbb, which 10 % of the keys get, {verb} this key."
    assert line in render_explanation(reply.json)


async def test_c107_a_bent_budget_and_a_measured_order_are_explained() -> None:
    call = await api(routes=BENT)
    bent = await ask(call, "smart", f"{PATH}?budget_left=19")
    assert bent.json["bend"] == "smart rule 1; 19% left"
    assert "Bent by the budget: smart rule 1; 19% left." in render_explanation(bent.json)
    await measure(call, near=900, far=200)
    by_speed = await ask(call, "acme/large", provider={"sort": "latency"})
    assert by_speed.json["sorted_by"] == "latency"
    assert "Endpoints are sorted by latency, as measured here." in render_explanation(by_speed.json)
    plain = await ask(call, "acme/large")
    shown = (plain.json[name] for name in ("bend", "candidate", "sorted_by", "quotas"))
    assert [*shown] == [None, None, None, []]
