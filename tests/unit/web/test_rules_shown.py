"""Records, log lines, metrics and replays name the rules that applied to a request.

Keeps C107.
"""

import json

import pytest
from msgspec.structs import replace

from tests.asgi import Exchange, request
from tests.gateways import Always, House, house
from tests.traffic import line
from tests.unit.web.test_bends import BENT
from tests.unit.web.test_limited_windows import CHAIN
from tests.unit.web.test_request_ceilings import PATHS, body
from tollgate.core.prompt_policy import PromptPolicy
from tollgate.core.records.generation import GenerationRecord
from tollgate.core.request import RoutingPreferences
from tollgate.observability.emf import OF_RULES, measure
from tollgate.observability.log import canonical_line
from tollgate.routing.review.traffic import read_traffic
from tollgate.routing.review.verdicts import ReplayPlanner, WouldRefuse, WouldServe
from tollgate.stores.ports.administration import NewKey
from tollgate.web.chat_app import chat_app
from tollgate.web.http.cors import WebLimits

QUOTA = "requests/day=1@acme/large"


async def ask(home: House, path: str = PATHS[0], *, stream: bool = False) -> Exchange:
    app = chat_app(home.front, Always(home.gateway), WebLimits())
    content = {**body(path, 100), "model": "smart", "stream": stream}
    headers = {"authorization": f"Bearer {home.secret}"}
    return await request(app, "POST", path, headers=headers, body=json.dumps(content).encode())


def rules_counted(record: GenerationRecord) -> set[str]:
    return {metric.name for metric in measure(record) if metric in OF_RULES}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path", PATHS)
async def test_c107_a_quota_that_left_a_model_out_is_named_in_every_format(
    path: str, stream: bool
) -> None:
    home = await house(key=NewKey(workspace_id="acme", label="k", quotas=QUOTA), routes=CHAIN)
    served = [(await ask(home, path, stream=stream)).headers["x-model-used"] for _ in range(2)]
    assert served == ["acme/large", "acme/small"]
    first, second = home.journal.records
    assert (first.trace.quotas_used_up, second.trace.quotas_used_up) == ((), (QUOTA,))
    assert canonical_line(second)["quotas_used_up"] == [QUOTA]
    assert (rules_counted(first), rules_counted(second)) == (set(), {"QuotasUsedUp"})


async def test_c107_a_replay_leaves_out_the_models_of_a_quota_that_was_used_up() -> None:
    home = await house(key=NewKey(workspace_id="acme", label="k", quotas=QUOTA), routes=CHAIN)
    for _ in range(2):
        await ask(home)
    planner = ReplayPlanner(home.catalog)
    verdicts = [planner.predict(each) for each in read_traffic(map(line, home.journal.records))]
    models = [each.model for each in verdicts if isinstance(each, WouldServe)]
    assert models == ["acme/large", "acme/small"]
    [second] = read_traffic([line(home.journal.records[1])])
    trace = replace(second.trace, quotas_used_up=("requests/day=1@acme/*",))
    assert isinstance(planner.predict(replace(second, trace=trace)), WouldRefuse)


@pytest.mark.parametrize("stream", [False, True])
async def test_c107_the_warning_of_a_reply_is_in_the_record(stream: bool) -> None:
    key = NewKey(workspace_id="acme", label="k", warn_at=1, limits_nano_usd={"day": 5_000_000})
    home = await house(key=key, routes=CHAIN)
    reply = await ask(home, stream=stream)
    warning = reply.headers["x-tollgate-limit-warning"]
    assert home.record.limit_warning == canonical_line(home.record)["limit_warning"] == warning
    assert rules_counted(home.record) == {"LimitsWarned"}


async def test_c107_a_bent_budget_and_a_candidate_catalog_are_named() -> None:
    limit = 100_000_000
    key = NewKey(workspace_id="acme", label="k", limits_nano_usd={"month": limit})
    home = await house(key=key, routes=BENT)
    await home.gateway.ledger.hold(home.principal, limit * 85 // 100)
    home.gateway = home.gateway.as_candidate()
    await ask(home)
    [record] = home.journal.records
    assert (record.trace.bend, record.trace.is_candidate) == ("smart rule 1; 15% left", True)
    shown = canonical_line(record)
    assert (shown["bend"], shown["candidate"]) == (record.trace.bend, True)
    assert rules_counted(record) == {"BudgetsBent", "CandidatesServed"}


async def test_c107_every_prompt_policy_is_in_the_log_line_and_counted_once() -> None:
    home = await house(routes=CHAIN)
    await ask(home)
    assert canonical_line(home.record)["prompt_policies"] == []
    trace = replace(
        home.record.trace,
        prompt_policies=(PromptPolicy(owner="team", regions=("eu",), no_training=True),),
        preferences=RoutingPreferences(prompt_policy=PromptPolicy(no_retention=True)),
    )
    record = replace(home.record, trace=trace)
    policies = ["team: eu,no_training", "request: no_retention"]
    assert canonical_line(record)["prompt_policies"] == policies
    assert rules_counted(record) == {"PromptsRestricted"}
