"""Shadow traffic: another model answers as well, at the operator's cost, and no caller notices.

Keeps C102.
"""

import asyncio
from typing import Any

import pytest
from msgspec.structs import replace

from tests.gateways import store_is_away
from tests.scripted import Scripted, Silence, answers, calls, ends, refuses, says
from tests.shadows import KEPT, open_shadowed
from tests.stores import TESTER, disable, funded_key
from tests.unit.engine.client_formats import CLIENT_FORMATS, ClientFormat
from tests.unit.routing.catalogs import RECENTLY, endpoint, model, provider
from tests.unit.web.test_api_app import Api
from tollgate.cli.gateway.shadow import compare_shadows
from tollgate.cli.routing.explanation import render_explanation
from tollgate.core.money.amounts import usd_text
from tollgate.core.records.generation import JudgementRecord
from tollgate.core.shadows import TOO_LATE_S
from tollgate.observability.emf import measure
from tollgate.observability.log import canonical_line
from tollgate.routing.chains import ShadowSection
from tollgate.routing.guardrail_sections import JudgedStage
from tollgate.routing.planning.planning_request import draw_key_hash
from tollgate.routing.planning.shadows import is_drawn
from tollgate.web.records.bill_notes import list_notes
from tollgate.web.records.generation_shapes import GenerationObject

# Deeper than a decoder of JSON goes.
NESTED = '{"a":' + "[" * 3_000 + "]" * 3_000 + "}"
PICTURE = {"type": "image_url", "image_url": {"url": "https://a.example/b.png"}}


async def test_c102_the_operator_pays_for_a_shadow_that_no_caller_notices() -> None:
    found = await open_shadowed()
    reply = await found.ask(user="eve")
    assert reply.json["choices"][0]["message"]["content"] == "Hello"
    assert not found.home.far.requests
    [original] = found.records("acme")
    paid = found.spent_nano_usd("acme")
    await found.work()
    [record] = found.shadows
    assert (record.outcome, record.model, record.key_id) == (
        "ok",
        "other/tools",
        found.payer.key_id,
    )
    assert record.shadow is not None
    assert (record.shadow.generation_id, record.shadow.route) == (original.id, "chat")
    assert record.shadow.cost_nano_usd == original.cost_nano_usd == paid
    assert (record.user, record.trace.route, record.caller_labels) == (None, None, {})
    assert found.spent_nano_usd("ops") == record.cost_nano_usd > 0
    assert found.spent_nano_usd("acme") == paid
    assert found.records("acme") == [original]
    # The answer of the shadow is stored nowhere.
    assert set(found.contents.stored) == {("acme", original.id)}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("client", CLIENT_FORMATS.values(), ids=CLIENT_FORMATS)
async def test_c102_every_client_format_has_shadows(client: ClientFormat, stream: bool) -> None:
    found = await open_shadowed()
    body = client.question | {"model": "chat", client.limit: 50, "stream": stream}
    if client.name == "responses":
        body["store"] = False
    reply = await found.post(client.row.path, body)
    assert reply.status == 200, reply.body
    await found.work()
    [record] = found.shadows
    assert (record.outcome, record.ingress_format) == ("ok", client.name)


async def test_c102_a_slow_or_absent_store_of_runs_delays_a_caller_half_a_second_at_most() -> None:
    found = await open_shadowed()
    clock = found.home.gateway.clock

    async def stall(*_: Any, **__: Any) -> None:
        await asyncio.sleep(60)

    found.send = stall  # type: ignore[method-assign]
    begun_s = clock.monotonic_s()
    assert (await found.ask()).status == 200
    assert clock.monotonic_s() - begun_s <= 0.5

    async def refuse(*_: Any, **__: Any) -> None:
        raise store_is_away()

    found.send = refuse  # type: ignore[method-assign]
    assert (await found.ask()).status == 200


async def test_c102_without_credit_no_provider_is_called() -> None:
    found = await open_shadowed(funds_nano_usd=0)
    await found.ask()
    await found.work()
    assert not found.home.far.requests
    assert not found.shadows


async def test_c102_the_payer_is_a_key_of_the_stated_workspace() -> None:
    found = await open_shadowed()
    new = replace(KEPT, workspace_id="other", label="theirs")
    _, stranger = await funded_key(found.home.stores, 10**9, new)
    found.shadow_by(workspace="ops", key_id=stranger.key_id)
    await found.ask()
    await found.work()
    assert not found.home.far.requests


async def test_c102_only_keys_that_store_content_take_part() -> None:
    found = await open_shadowed(key=replace(KEPT, content_days=None))
    await found.ask()
    assert not found.woken
    found = await open_shadowed()
    await found.ask()
    await found.home.stores.keys.change(
        "acme",
        found.home.principal.key_id,
        lambda settings: replace(settings, content_days=None),
        by=TESTER,
    )
    await found.home.gateway.clock.sleep(10)
    await found.work()
    assert not found.home.far.requests


async def test_c102_content_of_another_workspace_is_never_sent() -> None:
    found = await open_shadowed()
    await found.ask()
    [((_, generation_id), content)] = found.contents.stored.items()
    # The original is erased before the run begins.
    found.contents.stored.clear()
    found.contents.stored["other", generation_id] = content
    await found.work()
    assert not found.home.far.requests


@pytest.mark.parametrize(
    "fields",
    [
        {"n": 2},
        {"messages": [{"role": "user", "content": [PICTURE]}]},
        {"plugins": [{"id": "web"}]},
        {"model": "acme/large"},
    ],
    ids=["choices", "address", "tools", "no route"],
)
async def test_c102_other_requests_have_no_shadow(fields: dict[str, Any]) -> None:
    found = await open_shadowed()
    await found.ask(**fields)
    assert not found.woken


async def test_c102_failed_requests_and_shadows_themselves_have_no_shadow() -> None:
    found = await open_shadowed(Scripted(refuses(400)))
    await found.ask()
    await found.work()
    assert not found.shadows
    found = await open_shadowed()
    await found.ask()
    await found.work()
    assert len(found.woken) == len(found.shadows) == 1


async def test_c102_two_workers_call_the_provider_once() -> None:
    found = await open_shadowed(far=Scripted([*says("Hi"), Silence(5.0), *ends()]))
    await found.ask()
    await found.home.gateway.clock.sleep(20)
    await asyncio.gather(found.work(), found.work())
    await found.work()
    assert len(found.home.far.requests) == 1


async def test_c102_a_failed_shadow_costs_nothing_and_is_not_repeated() -> None:
    found = await open_shadowed(far=Scripted(refuses(400), answers("Hi")))
    await found.ask()
    await found.work()
    await found.work()
    [record] = found.shadows
    assert (record.outcome, record.cost_nano_usd) == ("error", 0)
    assert record.shadow is not None
    assert len(found.home.far.requests) == 1


async def test_c102_a_run_that_waited_for_an_hour_is_dropped() -> None:
    found = await open_shadowed()
    await found.ask()
    await found.home.gateway.clock.sleep(TOO_LATE_S + 1)
    await found.work()
    assert not found.home.far.requests


async def test_c102_a_disabled_key_has_no_shadow_any_more() -> None:
    found = await open_shadowed()
    await found.ask()
    await disable(found.home.stores, found.home.principal.key_id)
    await found.home.gateway.clock.sleep(10)
    await found.work()
    assert not found.home.far.requests


async def test_c102_models_and_policies_of_the_caller_hold_for_its_shadow() -> None:
    allowed = await open_shadowed(key=replace(KEPT, models=("acme/*",)))
    unused = {"training": "none", "source": "made up", "checked": RECENTLY}
    policed = await open_shadowed(
        key=replace(KEPT, prompt_policy="no_training"),
        providers={"near": provider(prompt_use=unused), "far": provider()},
    )
    requested = await open_shadowed()
    for found, fields in (
        (allowed, {}),
        (policed, {}),
        (requested, {"provider": {"only": ["near"]}}),
        (requested, {"provider": {"ignore": ["far"]}}),
    ):
        assert (await found.ask(**fields)).status == 200
        await found.work()
        assert not found.home.far.requests


async def test_c102_the_endpoints_of_a_shadow_meet_the_policies_of_the_caller() -> None:
    unused = {"training": "none", "source": "made up", "checked": RECENTLY}
    found = await open_shadowed(
        key=replace(KEPT, prompt_policy="no_training"),
        providers={"near": provider(prompt_use=unused), "far": provider()},
        models={
            "acme/large": model(endpoint("near", "large-1")),
            "other/tools": model(endpoint("far", "T"), endpoint("near", "T")),
        },
    )
    await found.ask()
    await found.work()
    [record] = found.shadows
    assert (record.outcome, record.provider) == ("ok", "near")
    assert not found.home.far.requests


@pytest.mark.parametrize("stage", ["input", "tool_results", "tool_arguments"])
async def test_c102_what_a_guardrail_masks_is_not_sent_to_a_shadow(stage: JudgedStage) -> None:
    found = await open_shadowed()
    await found.ask()
    books = found.home.stores.books
    [(place, record)] = [each for each in books.records.items() if each[0][0] == "acme"]
    masked = JudgementRecord(guardrail="pii", stage=stage, verdict="mask")
    books.records[place] = replace(record, judgements=(masked,))
    await found.work()
    assert not found.home.far.requests


@pytest.mark.parametrize(
    ("near", "far", "expected"),
    [
        (calls("get", '{"a": 1, "b": 2}'), calls("get", '{"b":2,"a":1}'), "same"),
        (calls("get", '{"a": 1}'), calls("get", '{"a": 2}'), "different"),
        (calls("get"), says("Hi"), "different"),
        (says("Hello"), says("Hi"), None),
        (calls("get", NESTED), calls("get"), "different"),
    ],
)
async def test_c102_tool_calls_are_compared(near: Any, far: Any, expected: str | None) -> None:
    found = await open_shadowed(Scripted([*near, *ends()]), Scripted([*far, *ends()]))
    tool = {"type": "function", "function": {"name": "get", "parameters": {"type": "object"}}}
    await found.ask(tools=[tool])
    await found.work()
    [record] = found.shadows
    assert record.shadow is not None
    assert record.shadow.tool_calls == expected


@pytest.mark.parametrize("verdict", ["A", "b, since", "Tie.", "Neither pleases"])
async def test_c102_a_judge_compares_both_answers(verdict: str) -> None:
    found = await open_shadowed(
        Scripted(answers("Hello there"), answers(verdict)), judge="acme/small"
    )
    await found.ask()
    await found.work()
    shadow, judge = found.shadows
    assert judge.shadow is not None
    assert shadow.shadow == replace(judge.shadow, judges=False, preferred=None)
    asked = found.home.near.requests[1].body["messages"][1]["content"]
    shadow_first = asked.index("Hi") < asked.index("Hello there")
    first, second = ("shadow", "original") if shadow_first else ("original", "shadow")
    expected = {"A": first, "b, since": second, "Tie.": "neither"}.get(verdict)
    assert (judge.shadow.judges, judge.shadow.preferred) == (True, expected)
    assert found.spent_nano_usd("ops") == shadow.cost_nano_usd + judge.cost_nano_usd


async def test_c102_a_report_compares_by_route_and_models() -> None:
    found = await open_shadowed(
        Scripted(answers("Hello"), answers("tie"), refuses(400)),
        Scripted(answers("Hi"), refuses(400)),
        judge="acme/small",
    )
    await found.ask()
    await found.work()
    found.home.near.requests.clear()
    await found.ask()
    await found.work()
    originals = found.records("acme")
    shown = [GenerationObject.of(each).model_dump() for each in (*found.shadows, *originals)]
    [row] = compare_shadows(shown)
    shadow, judge, failed = found.shadows
    assert (failed.outcome, row["requests"], row["failed"]) == ("error", "2", "1")
    assert (row["route"], row["original"], row["shadow"]) == ("chat", "acme/large", "other/tools")
    assert row["usd"] == usd_text(originals[0].cost_nano_usd)
    assert row["shadow_usd"] == usd_text(shadow.cost_nano_usd)
    assert row["judge_usd"] == usd_text(judge.cost_nano_usd)
    assert (row["tokens"], row["refused"], row["calls"]) == ("2", "0", "0")
    assert (row["judged"], row["ties"], row["preferred"]) == ("1", "1", "0")


@pytest.mark.parametrize(
    ("days", "share", "fields", "used", "unused"),
    [
        (7, 100, {}, True, None),
        (7, 99, {"session_id": "s"}, True, None),
        # A request without a session is drawn by its id.
        (7, 99, {}, None, None),
        (None, 100, {}, False, "the key has no content_days"),
        (7, 100, {"n": 2}, False, "the request is not one plain prompt for one answer"),
        (7, 1, {"session_id": "s"}, False, "its session is not drawn"),
    ],
)
async def test_c53_c102_an_explanation_says_whether_the_shadow_gets_a_request(
    days: int | None, share: int, fields: dict[str, Any], used: bool | None, unused: str | None
) -> None:
    found = await open_shadowed(key=replace(KEPT, content_days=days), share=share)
    call = Api(found.home, "", "")
    body = {"model": "chat", "messages": [{"role": "user", "content": "Hi"}], **fields}
    reply = await call("POST", "/v1/route/explain", key=found.home.secret, content=body)
    assert reply.json["shadow"] == {
        "model": "other/tools",
        "share": share,
        "judge": None,
        "used": used,
        "unused": unused,
    }
    [line] = (line for line in render_explanation(reply.json) if "as a shadow" in line)
    assert line.startswith(f"{share} % of the route's requests")
    verdicts = {True: "This request does.", None: "", False: f"This request does not: {unused}."}
    assert line.partition(", at no cost to the caller.")[2].strip() == verdicts[used]
    plain = await call(
        "POST", "/v1/route/explain", key=found.home.secret, content={**body, "model": "acme/large"}
    )
    assert plain.json["shadow"] is None


async def test_c102_records_and_bills_name_the_original() -> None:
    found = await open_shadowed()
    await found.ask()
    await found.work()
    [original], [shadow] = found.records("acme"), found.shadows
    assert canonical_line(shadow)["shadow_of"] == original.id
    assert f"shadow of gen-{original.id} on route chat" in list_notes(shadow, ())
    assert "Shadows" in {metric.name for metric in measure(shadow)}


def test_c102_a_larger_share_adds_requests() -> None:
    shadow = shadow_of(share=10)
    keys = [draw_key_hash(str(number)) for number in range(2_000)]
    few = {key for key in keys if is_drawn(shadow, "chat", key)}
    more = {key for key in keys if is_drawn(shadow_of(share=30), "chat", key)}
    assert 150 < len(few) < 250
    assert 500 < len(more) < 700
    assert few < more
    assert all(is_drawn(shadow_of(share=100), "chat", key) for key in keys)


def shadow_of(share: int) -> ShadowSection:
    return ShadowSection(model="other/tools", share=share, workspace="ops", key_id="k")
