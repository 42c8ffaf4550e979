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
from tollgate.core.routing.endpoint_status import AnswerTime, CooldownPolicy, Speed
from tollgate.engine.generate import generate

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


async def ask(home: House, name: str = "acme/large", **provider: Any) -> RecordedReply:
    parsed = home.ingress.parse(request_body(name, stream=True, provider=provider))
    call = replace(home.call(name), parsed=parsed)
    reply = home.reply()
    await generate(home.gateway, call, home.sink(call, reply))
    return reply


async def measured(home: House, **speeds: AnswerTime) -> None:
    """Let other instances have measured `near`, `far` or both."""
    ids = {"near": NEAR, "far": FAR}
    for name, times in speeds.items():
        home.stores.cooldowns.add_answer(ids[name], times)
        await home.stores.cooldowns.write_speed(ids[name])


def time(first_token_ms: int, tokens_per_s: int = 0) -> AnswerTime:
    return AnswerTime(
        first_token_ms=first_token_ms,
        output_tokens=tokens_per_s,
        output_ms=1_000 if tokens_per_s else 0,
    )


def server(reply: RecordedReply) -> str:
    return reply.headers["x-provider-used"]


async def test_c19_an_answer_is_measured_from_its_own_attempt_to_its_last_token() -> None:
    refused = [Silence(5), *refuses(500)]
    home = await house(near=Scripted(refused), far=Scripted(slow(0.5, tokens=30)))
    await home.serve()
    assert await home.stores.cooldowns.find_speeds(BOTH) == {
        FAR: Speed(latency_ms=500, tokens_per_s=20.0)
    }


@pytest.mark.parametrize(
    ("preference", "served"), [("latency", "far"), ("throughput", "near"), ("price", "near")]
)
async def test_c19_the_faster_one_serves(preference: str, served: str) -> None:
    home = await house()
    await measured(home, near=time(900, 80), far=time(200, 40))
    reply = await ask(home, sort=preference)
    assert server(reply) == served
    assert "x-tollgate-adapted" not in reply.headers


async def test_c19_what_is_not_measured_comes_last() -> None:
    home = await house()
    await measured(home, far=time(60_000, 1))
    assert server(await ask(home, sort="latency")) == "far"
    assert server(await ask(home, sort="throughput")) == "far"
    assert server(await ask(home)) == "near"


async def test_c19_if_nothing_is_measured_the_reply_says_that_the_order_is_another() -> None:
    home = await house()
    reply = await ask(home, sort="throughput")
    assert (server(reply), reply.headers["x-tollgate-adapted"]) == ("near", "provider.sort")
    assert home.record.adapted == ("provider.sort",)
    # The answer above has measured one of the two.
    await ask(home)
    await home.gateway.clock.sleep(31)
    assert "x-tollgate-adapted" not in (await ask(home, sort="latency")).headers


async def test_c19_a_latency_alone_says_nothing_about_throughput() -> None:
    home = await house()
    await measured(home, far=time(10))
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


async def test_c19_without_fallbacks_only_the_fastest_is_tried() -> None:
    home = await house(far=Scripted(refuses(500)))
    await measured(home, near=time(900), far=time(200))
    reply = await ask(home, sort="latency", allow_fallbacks=False)
    assert reply.status == 502
    assert {each.provider for each in home.record.attempts} == {"far"}


async def test_c19_speeds_choose_among_endpoints_and_not_among_models() -> None:
    home = await house()
    home.stores.cooldowns.add_answer("far/T", time(1))
    await home.stores.cooldowns.write_speed("far/T")
    await measured(home, near=time(900), far=time(200))
    await ask(home, "smart", sort="latency")
    assert home.record.model == "acme/small"


async def test_c19_an_only_endpoint_is_not_measured() -> None:
    home = await house()
    await ask(home, "acme/small")
    assert await home.stores.cooldowns.find_speeds(["near/small-1"]) == {}


@pytest.mark.parametrize(
    "answer", [[*says("Hel"), FOREVER], [*says("Hel"), *refuses(500)]], ids=["silence", "break"]
)
async def test_c19_an_answer_that_does_not_end_measures_nothing(answer: list[Step]) -> None:
    home = await house(near=Scripted(answer), far=Scripted(answer))
    await home.serve()
    assert home.record.outcome != "ok"
    assert await home.stores.cooldowns.find_speeds(BOTH) == {}


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
    assert writes == [NEAR]


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
