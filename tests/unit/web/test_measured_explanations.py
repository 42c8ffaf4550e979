"""An explanation shows what the gateway measured, and the order that follows from it.

Keeps C19, C53.
"""

from tests.unit.web.test_api_app import Api, api
from tests.unit.web.test_explanations import PATH, ask, considered
from tollgate.cli.routing.explanation import render_explanation
from tollgate.core.routing.endpoint_status import AnswerTime


async def measure(call: Api, *, near: int, far: int) -> None:
    store = call.home.stores.cooldowns
    for slug, first_token_ms in {"near/large-1": near, "far/L": far}.items():
        times = AnswerTime(
            answers=20,
            first_token_ms=20 * first_token_ms,
            output_tokens=20 * 40,
            output_ms=20 * 1_500,
        )
        store.add_answer(f"{slug} <=2000", times)
        await store.write_speed(f"{slug} <=2000")


async def test_c19_c53_a_request_that_sorts_by_speed_is_told_the_figures_and_the_order() -> None:
    call = await api()
    await measure(call, near=900, far=200)
    by_speed = {"provider": {"sort": "latency"}}
    reply = await ask(call, "acme/large", f"{PATH}?simulate=429@far", **by_speed)
    assert considered(reply) == [(2, "near/large-1", None), (1, "far/L", None)]
    speeds = [(it["latency_ms"], it["tokens_per_s"]) for it in reply.json["candidates"]]
    assert speeds == [(900, 26.7), (200, 26.7)]
    tries = [(it["provider"], it["error"]) for it in reply.json["simulation"]["attempts"]]
    assert tries == [("far", "provider_rate_limit"), ("near", None)]
    assert reply.json["unmet"] == []
    unsorted = await ask(call, "acme/large")
    assert considered(unsorted) == [(1, "near/large-1", None), (2, "far/L", None)]


async def test_c19_c53_it_is_told_that_nothing_is_measured() -> None:
    call = await api()
    reply = await ask(call, "acme/large", provider={"sort": "throughput"})
    assert reply.json["unmet"] == ["provider.sort"]
    assert considered(reply) == [(1, "near/large-1", None), (2, "far/L", None)]
    [line] = [it for it in render_explanation(reply.json) if it.startswith("provider.sort")]
    assert line == "provider.sort has no effect: no measurements of these endpoints are available."


async def test_c19_c53_few_measurements_are_named_and_other_sizes_are_not_shown() -> None:
    call = await api()
    await measure(call, near=900, far=200)
    store = call.home.stores.cooldowns
    few = AnswerTime(answers=3, first_token_ms=30, prompt_tokens=50, cached_tokens=20)
    store.add_answer("far/L", few)
    await store.write_speed("far/L")
    reply = await ask(
        call,
        "acme/large",
        provider={"sort": "latency"},
        messages=[{"role": "user", "content": "word " * 16_000}],
    )
    assert considered(reply) == [(1, "near/large-1", None), (2, "far/L", None)]
    near, far = reply.json["candidates"]
    assert (near["latency_ms"], near["samples"], near["thin"]) == (
        None,
        None,
        "too few answers: 0 of 20",
    )
    assert (far["latency_ms"], far["samples"], far["thin"]) == (10, 3, "too few answers: 3 of 20")
    remark = "too few answers: 3 of 20, 40% of prompts cached"
    assert any(remark in each for each in render_explanation(reply.json))


async def test_c19_c53_without_fallbacks_all_but_the_fastest_are_excluded() -> None:
    call = await api()
    await measure(call, near=900, far=200)
    only = {"sort": "latency", "allow_fallbacks": False}
    reply = await ask(call, "acme/large", provider=only)
    assert considered(reply) == [(None, "near/large-1", "fallbacks are off"), (1, "far/L", None)]
    heads, near, far = render_explanation(reply.json)[3:6]
    assert "first token" in heads
    assert "200 ms" in near
    assert "26.7" in far
