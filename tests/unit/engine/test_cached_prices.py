"""`sort: price` ranks endpoints by what a prompt costs there, given how much of it is cached.

Keeps C19, C53.
"""

import json
from typing import Any

import pytest
from msgspec.structs import replace

from tests.gateways import House, house, request_body
from tests.traffic import line
from tests.unit.routing.catalogs import RECENTLY, endpoint, model
from tollgate.core.routing.endpoint_status import AnswerTime
from tollgate.engine.generate import generate
from tollgate.routing.review.traffic import read_traffic
from tollgate.routing.review.verdicts import ReplayPlanner, WouldServe

NEAR, FAR = "near/l", "far/L"
WORDS = 5_000
# `far` is cheaper, unless the prompt is cached at `near`.
MODELS: dict[str, object] = {
    "acme/large": model(
        endpoint("near", "l", dollars_in="3", dollars_out="15", cache_read="0.3"),
        endpoint("far", "L", dollars_in="2.8", dollars_out="15", cache_read="0.28"),
        cacheable={"tokens_min": 1024, "source": "made up", "checked": RECENTLY},
    )
}


async def priced(**speeds: object) -> House:
    return await house(
        models=MODELS,
        aliases={},
        routes={"cheap": {"description": "Cheap", "try": ("acme/large",), "sort": "price"}},
        defaults={"speeds": {"explore_percent": 0, **speeds}},
    )


async def cached(home: House, endpoint_id: str, share: float, *, answers: int = 20) -> None:
    """Store cached shares that other instances have measured for prompts of this size."""
    times = AnswerTime(
        answers=answers,
        first_token_ms=100,
        output_tokens=200 * answers,
        output_ms=1_000,
        prompt_tokens=10_000 * answers,
        cached_tokens=round(10_000 * share) * answers,
    )
    home.stores.cooldowns.add_answer(f"{endpoint_id} <=16000", times)
    await home.stores.cooldowns.write_speed(f"{endpoint_id} <=16000")


async def ask(home: House, name: str = "acme/large", *, said: str = "Hello", **fields: Any) -> str:
    messages = [
        {"role": "system", "content": "word " * WORDS},
        {"role": "user", "content": said},
    ]
    parsed = home.ingress.parse(request_body(name, stream=True, messages=messages, **fields))
    call, reply = replace(home.call(name), parsed=parsed), home.reply()
    await generate(home.gateway, call, home.sink(call, reply))
    return reply.headers["x-provider-used"]


BY_PRICE = {"provider": {"sort": "price"}}


@pytest.mark.parametrize(
    ("near", "far", "served"),
    [(None, None, "far"), (0.9, None, "far"), (0.9, 0.1, "near"), (0.9, 0.9, "far")],
)
async def test_c19_the_price_of_a_prompt_is_that_of_its_cached_and_other_tokens(
    near: float | None, far: float | None, served: str
) -> None:
    home = await priced()
    for endpoint_id, share in {NEAR: near, FAR: far}.items():
        if share is not None:
            await cached(home, endpoint_id, share)
    assert await ask(home, **BY_PRICE) == served
    assert home.record.adapted == ()


@pytest.mark.parametrize(("answers", "served"), [(19, "far"), (20, "near")])
async def test_c19_a_share_of_few_answers_decides_nothing(answers: int, served: str) -> None:
    home = await priced()
    await cached(home, NEAR, 0.9, answers=answers)
    await cached(home, FAR, 0.1)
    assert await ask(home, "cheap") == served


async def test_c53_a_small_difference_moves_no_conversation() -> None:
    home = await priced()
    await cached(home, NEAR, 0.84)
    await cached(home, FAR, 0.76)
    assert await ask(home, "cheap") == "far"


async def test_c53_all_turns_of_a_conversation_explore_or_none_and_plan_repeats_them() -> None:
    home = await priced(explore_percent=30)
    await cached(home, FAR, 0.1)
    talks = [f"Hello {number}" for number in range(20)]
    served: dict[str, set[str]] = {}
    for said in talks * 3:
        served.setdefault(said, set()).add(await ask(home, "cheap", said=said))
    assert {json.dumps(sorted(each)) for each in served.values()} == {'["far"]', '["near"]'}
    explored = [each for each in home.journal.records if each.trace.explored == NEAR]
    assert {each.provider for each in explored} == {"near"}
    planner = ReplayPlanner(home.catalog)
    records = home.journal.records
    for record, request in zip(records, read_traffic(map(line, records)), strict=True):
        verdict = planner.predict(request)
        assert isinstance(verdict, WouldServe)
        assert verdict.provider == record.provider


async def test_c53_plan_repeats_an_order_by_cached_prompts() -> None:
    home = await priced()
    await cached(home, NEAR, 0.9)
    await cached(home, FAR, 0.1)
    await ask(home, "cheap")
    [request] = read_traffic(map(line, home.journal.records))
    assert request.trace.speeds[NEAR].cached_share == 0.9
    verdict = ReplayPlanner(home.catalog).predict(request)
    assert isinstance(verdict, WouldServe)
    assert (verdict.provider, request.provider_name) == ("near", "near")
