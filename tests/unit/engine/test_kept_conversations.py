"""A conversation without a session id stays at its endpoint while this is healthy.

Keeps C51, C53.
"""

import json
from typing import Any

from msgspec.structs import replace

from tests.gateways import House, house
from tests.scripted import Scripted, answers, refuses
from tests.unit.routing.catalogs import RECENTLY, endpoint, model
from tollgate.engine.generate import generate
from tollgate.routing.planning.planner import Planner
from tollgate.routing.planning.planning_request import PlanningRequest

SYSTEM = {"role": "system", "content": "x" * 8_000}
MODELS = {
    "acme/large": model(
        endpoint("near", "large-1") | {"weight": 50},
        endpoint("far", "L") | {"weight": 50},
        cacheable={"tokens_min": 1024, "source": "made up", "checked": RECENTLY},
    )
}


async def served_by(home: House, said: str, turns: int) -> str:
    later: list[dict[str, Any]] = [
        {"role": "assistant", "content": "Yes."},
        {"role": "user", "content": "And now?"},
    ]
    messages = [SYSTEM, {"role": "user", "content": said}, *later * turns]
    body = {"model": "acme/large", "messages": messages, "max_tokens": 9, "stream": True}
    call = replace(
        home.call("acme/large"), parsed=home.ingress.parse(json.dumps(body).encode("utf-8"))
    )
    reply = home.reply()
    await generate(home.gateway, call, home.sink(call, reply))
    return reply.headers["x-provider-used"]


async def first_at_near(home: House) -> str:
    """Return the first words of a conversation that is drawn to `near`."""
    for number in range(20):
        if await served_by(home, f"Talk {number}", 0) == "near":
            return f"Talk {number}"
    raise AssertionError("Nothing is drawn to near.")


async def test_c53_c51_a_conversation_leaves_an_endpoint_that_rests_and_comes_back() -> None:
    near = Scripted(answers("Hello"), *[refuses(429)] * 3, answers("Back"))
    home = await house(near=near, models=MODELS, routes={}, aliases={})
    said = await first_at_near(home)
    assert [await served_by(home, said, turns) for turns in range(1, 6)] == ["far"] * 5
    await home.gateway.clock.sleep(31)
    assert [await served_by(home, said, turns) for turns in range(6, 9)] == ["near"] * 3


async def test_c53_records_of_a_conversation_have_its_hash_and_repeat_its_draw() -> None:
    home = await house(models=MODELS, routes={}, aliases={})
    for turns in range(4):
        await served_by(home, "Hello", turns)
    records = home.stores.books.records.values()
    assert len({record.trace.conversation_hash for record in records}) == 1
    for record in records:
        wanted = PlanningRequest.recorded(record.trace)
        plan = Planner(home.catalog).plan(wanted, now_s=home.gateway.clock.now_s())
        assert plan.attempts[0].target.provider == record.provider
