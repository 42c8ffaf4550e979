"""`provider.sort` by latency and throughput goes by what the gateway measured of its own answers.

Keeps C19.
"""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from tests.gateways import House, RecordedReply, house, request_body
from tests.scripted import FOREVER, Scripted, Silence, Step, answers, counts, ends, refuses, says
from tests.traffic import line
from tollgate.core.routing.endpoint_status import AnswerTime, CooldownPolicy, Speed
from tollgate.engine.generate import generate
from tollgate.routing.review.traffic import read_traffic
from tollgate.routing.review.verdicts import ReplayPlanner, WouldServe

NEAR, FAR = "near/large-1", "far/L"
BOTH = (NEAR, FAR)


def slow(first_s: float, tokens: int = 20, rest_s: float = 1.0) -> list[Step]:
    """An answer whose first token and whose rest take their time."""
    return [
        Silence(first_s),
        *says("Hel"),
        Silence(rest_s),
        *says("lo"),
        ends()[0],
        counts(10, tokens),
        ends()[-1],
    ]


async def ask(
    home: House, name: str = "acme/large", *, words: int = 1, **provider: Any
) -> RecordedReply:
    messages = [{"role": "user", "content": "word " * words}]
    parsed = home.ingress.parse(
        request_body(name, stream=True, messages=messages, provider=provider)
    )
    call = replace(home.call(name), parsed=parsed)
    reply = home.reply()
    await generate(home.gateway, call, home.sink(call, reply))
    return reply


async def measured(home: House, **speeds: AnswerTime) -> None:
    """Let other instances have measured `near`, `far` or both."""
    ids = {"near": f"{NEAR} <=2000", "far": f"{FAR} <=2000"}
    for name, times in speeds.items():
        home.stores.cooldowns.add_answer(ids[name], times)
        await home.stores.cooldowns.write_speed(ids[name])


def time(first_token_ms: int, tokens_per_s: int = 0, *, answers: int = 20) -> AnswerTime:
    return AnswerTime(
        answers=answers,
        first_token_ms=answers * first_token_ms,
        output_tokens=answers * tokens_per_s,
        output_ms=answers * 1_000 if tokens_per_s else 0,
    )


def server(reply: RecordedReply) -> str:
    return reply.headers["x-provider-used"]


async def test_c19_an_answer_is_measured_from_its_own_attempt_to_its_last_token() -> None:
    refused = [Silence(5), *refuses(500)]
    home = await house(near=Scripted(refused), far=Scripted(slow(0.5, tokens=30)))
    await home.serve()
    speeds = await home.stores.cooldowns.find_speeds([f"{name} <=2000" for name in BOTH])
    assert {name: replace(speed, since_s=0) for name, speed in speeds.items()} == {
        f"{FAR} <=2000": Speed(
            latency_ms=500, tokens_per_s=20.0, output_tokens=30, cached_share=0.0, answers=1
        )
    }


@pytest.mark.parametrize(
    ("preference", "served"), [("latency", "far"), ("throughput", "near"), ("price", "near")]
)
async def test_c19_the_faster_one_serves(preference: str, served: str) -> None:
    home = await house()
    await measured(home, near=time(900, 80), far=time(200, 40))
    reply = await ask(home, sort=preference)
    assert server(reply) == served
    assert home.record.trace.sorted_by == preference
    assert "x-tollgate-adapted" not in reply.headers


@pytest.mark.parametrize("answers", [0, 3, 19, 20])
async def test_c19_an_endpoint_with_few_answers_keeps_its_place(answers: int) -> None:
    home = await house(defaults={"speeds": {"explore_percent": 0}})
    await measured(home, far=time(200))
    if answers:
        await measured(home, near=time(900, answers=answers))
    reply = await ask(home, sort="latency")
    if answers == 20:
        assert (server(reply), home.record.adapted) == ("far", ())
    else:
        assert (server(reply), home.record.adapted) == ("near", ("provider.sort",))
    figures = home.record.trace.speeds
    assert figures[FAR].answers == 20
    assert NEAR not in figures or figures[NEAR].answers == answers


async def test_c19_prompts_of_each_size_are_measured_apart() -> None:
    home = await house(near=Scripted(slow(0.1)), far=Scripted(slow(0.5)))
    await measured(home, near=time(900), far=time(200))
    large = [f"{name} <=16000" for name in BOTH]
    for name, ms in zip(large, (200, 900), strict=True):
        home.stores.cooldowns.add_answer(name, time(ms))
        await home.stores.cooldowns.write_speed(name)
    assert server(await ask(home, sort="latency")) == "far"
    assert server(await ask(home, sort="latency", words=4_000)) == "near"
    await home.gateway.clock.sleep(61)
    await ask(home, words=4_000)
    speeds = await home.stores.cooldowns.find_speeds(large)
    assert [speeds[name].answers for name in large] == [22, 20]


async def test_c19_a_share_of_requests_measures_what_is_old_and_plan_repeats_it() -> None:
    home = await house(defaults={"speeds": {"explore_percent": 25}})
    await measured(home, near=time(900), far=time(200))
    for _ in range(20):
        await ask(home, sort="latency")
    assert {each.trace.explored for each in home.journal.records} == {None}
    await home.gateway.clock.sleep(3_600)
    # The faster endpoint has new figures; the other has not been measured for an hour.
    await measured(home, far=time(200))
    await home.gateway.clock.sleep(31)
    home.journal.records.clear()
    for _ in range(100):
        await ask(home, sort="latency")
    explored = [each for each in home.journal.records if each.trace.explored]
    assert 10 < len(explored) < 45
    assert {(each.trace.explored, each.provider) for each in explored} == {(NEAR, "near")}
    assert {each.provider for each in home.journal.records if not each.trace.explored} == {"far"}
    planner = ReplayPlanner(home.catalog)
    for recorded, request in zip(
        home.journal.records, read_traffic(map(line, home.journal.records)), strict=True
    ):
        verdict = planner.predict(request)
        assert isinstance(verdict, WouldServe)
        assert verdict.provider == recorded.provider


@pytest.mark.parametrize("wanted", [{"allow_fallbacks": False}, {"order": ["far"]}])
async def test_c19_without_fallbacks_or_with_an_order_nothing_is_explored(
    wanted: dict[str, Any],
) -> None:
    home = await house(defaults={"speeds": {"explore_percent": 50}})
    await measured(home, far=time(200))
    for _ in range(20):
        await ask(home, sort="latency", **wanted)
    assert {each.trace.explored for each in home.journal.records} == {None}


async def test_c51_an_endpoint_that_rests_is_not_explored() -> None:
    home = await house(defaults={"speeds": {"explore_percent": 50}})
    await measured(home, near=time(200))
    for _ in range(3):
        await home.stores.cooldowns.count_failure(FAR, home.gateway.cooldown)
    for _ in range(20):
        assert server(await ask(home, sort="latency")) == "near"
    assert {each.trace.explored for each in home.journal.records} == {None}


async def test_c19_if_nothing_is_measured_the_reply_says_that_the_order_is_another() -> None:
    home = await house(defaults={"speeds": {"explore_percent": 0}})
    reply = await ask(home, sort="throughput")
    assert (server(reply), reply.headers["x-tollgate-adapted"]) == ("near", "provider.sort")
    assert home.record.adapted == ("provider.sort",)


async def test_c19_a_latency_alone_says_nothing_about_throughput() -> None:
    home = await house(defaults={"speeds": {"explore_percent": 0}})
    await measured(home, near=time(900), far=time(10))
    reply = await ask(home, sort="throughput")
    assert (server(reply), reply.headers["x-tollgate-adapted"]) == ("near", "provider.sort")


async def test_c19_the_order_of_the_request_comes_before_the_speed() -> None:
    home = await house()
    await measured(home, near=time(900), far=time(200))
    assert server(await ask(home, sort="latency", order=["near"])) == "near"


async def test_c19_a_fast_one_that_rests_is_tried_last() -> None:
    home = await house()
    await measured(home, near=time(900), far=time(200))
    for _ in range(3):
        await home.stores.cooldowns.count_failure(FAR, CooldownPolicy())
    assert server(await ask(home, sort="latency")) == "near"


@pytest.mark.parametrize(("asked", "served"), [(None, "far"), ("throughput", "near")])
async def test_c19_a_route_may_state_the_order_and_the_caller_another(
    asked: str | None, served: str
) -> None:
    route = {"description": "Fast", "try": ("acme/large",), "sort": "latency"}
    home = await house(routes={"fast": route})
    await measured(home, near=time(900, 80), far=time(200, 40))
    assert server(await ask(home, "fast", **({"sort": asked} if asked else {}))) == served
    assert server(await ask(home)) == "near"


async def test_c19_an_order_of_the_route_that_cannot_be_kept_adapts_nothing() -> None:
    route = {"description": "Fast", "try": ("acme/large",), "sort": "latency"}
    home = await house(routes={"fast": route}, defaults={"speeds": {"explore_percent": 0}})
    reply = await ask(home, "fast")
    assert (server(reply), home.record.adapted) == ("near", ())


async def test_c19_without_fallbacks_only_the_fastest_is_tried() -> None:
    home = await house(far=Scripted(refuses(500)))
    await measured(home, near=time(900), far=time(200))
    reply = await ask(home, sort="latency", allow_fallbacks=False)
    assert reply.status == 502
    assert {each.provider for each in home.record.attempts} == {"far"}


async def test_c19_speeds_choose_among_endpoints_and_not_among_models() -> None:
    home = await house()
    home.stores.cooldowns.add_answer("far/T <=2000", time(1))
    await home.stores.cooldowns.write_speed("far/T <=2000")
    await measured(home, near=time(900), far=time(200))
    await ask(home, "smart", sort="latency")
    assert home.record.model == "acme/small"


async def test_c19_an_only_endpoint_is_not_measured() -> None:
    home = await house()
    await ask(home, "acme/small")
    assert await home.stores.cooldowns.find_speeds(["near/small-1 <=2000"]) == {}


@pytest.mark.parametrize(
    "answer", [[*says("Hel"), FOREVER], [*says("Hel"), *refuses(500)]], ids=["silence", "break"]
)
async def test_c19_an_answer_that_does_not_end_measures_nothing(answer: list[Step]) -> None:
    home = await house(near=Scripted(answer), far=Scripted(answer))
    await home.serve()
    assert home.record.outcome != "ok"
    assert await home.stores.cooldowns.find_speeds([f"{name} <=2000" for name in BOTH]) == {}


async def test_c19_hundreds_of_answers_in_a_minute_are_one_write() -> None:
    home = await house(near=Scripted(answers("Hello")))
    writes: list[str] = []
    write = home.stores.cooldowns.write_speed

    async def counted(endpoint_id: str) -> None:
        writes.append(endpoint_id)
        await write(endpoint_id)

    home.stores.cooldowns.write_speed = counted  # type: ignore[method-assign]
    for _ in range(200):
        await home.serve()
    assert writes == [f"{NEAR} <=2000"]


class Defective:
    """A store that breaks its promise never to raise, where it measures."""

    def __init__(self, *, fails_at_once: bool) -> None:
        self._fails_at_once = fails_at_once

    async def find_resting(
        self, endpoint_ids: Collection[str], policy: CooldownPolicy
    ) -> Mapping[str, float]:
        return {}

    def awaits_answer(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        return False

    def add_answer(self, endpoint_id: str, times: AnswerTime) -> bool:
        if self._fails_at_once:
            raise KeyError(endpoint_id)
        return True

    async def write_speed(self, endpoint_id: str) -> None:
        raise KeyError(endpoint_id)


@pytest.mark.parametrize("fails_at_once", [True, False])
async def test_a_measurement_that_breaks_is_a_defect_and_the_answer_stands(
    fails_at_once: bool,
) -> None:
    home = await house()
    store = Defective(fails_at_once=fails_at_once)
    home = dataclasses.replace(home, gateway=replace(home.gateway, cooldowns=store))
    assert server(await home.serve()) == "near"
    assert home.record.outcome == "ok"
    assert [type(unexpected_error) for unexpected_error, _ in home.journal.defects] == [KeyError]


@pytest.mark.parametrize("takes_s", [0.0, 30.0])
async def test_c19_a_caller_who_reads_slowly_slows_no_endpoint_for_others(takes_s: float) -> None:
    home = await house(near=Scripted(slow(0.5, tokens=30)))
    call = replace(home.call("acme/large"), parsed=home.ingress.parse(request_body(stream=True)))
    await generate(home.gateway, call, home.sink(call, home.reply(write_takes_s=takes_s)))
    [speed] = (await home.stores.cooldowns.find_speeds([f"{NEAR} <=2000"])).values()
    assert speed.tokens_per_s == (None if takes_s else 20.0)
