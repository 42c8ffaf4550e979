"""What the engine did, a replay of its records through the same catalog does again.

Keeps C53, C65.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from decimal import Decimal
from random import Random
from typing import Any

import pytest
from msgspec.structs import replace

from tests.gateways import TIME_S, house, request_body
from tests.scripted import Answer, Scripted, counts, frame, refuses, says
from tests.unit.routing.catalogs import catalog, endpoint, model, price
from tests.upstream.openai_chunks import chunk
from tollgate.core.clock import Deadline
from tollgate.core.errors import RequestError
from tollgate.core.records.generation import GenerationRecord
from tollgate.engine.generate import generate
from tollgate.providers.ports.base import Frame
from tollgate.routing.review.replay import replay_traffic
from tollgate.routing.review.traffic import read_traffic
from tollgate.routing.review.verdicts import ReplayPlanner, WouldServe
from tollgate.web.records.generation_shapes import GenerationObject

# Each night ten thousand in four runs, so that several cores share them.
RUNS = [(0, 500), *(pytest.param(run, 2_500, marks=pytest.mark.nightly) for run in range(4))]
NAMES = ("smart", "best", "acme/large", "gpt-4o", "other/tools", "mixed")
# Prices change on the way; with minutes between two requests, no limit is met.
TWENTY_DAYS_S = 20 * 86_400

DATED = {"when": {"from": "2022-03-05"}, "price": {"input": Decimal(5), "output": Decimal(25)}}
LONG = {"when": {"prompt_tokens_over": 5_000}, "price": {"input": Decimal("4.5")}}
NIGHTLY = {"when": {"utc_window": "22:00-06:00"}, "price": {"output": Decimal("0.7")}}
SECTIONS: dict[str, Any] = {
    "defaults": {"cooldown": {"after_failures": 100, "within_s": 1, "rest_s": 0}},
    "models": {
        "acme/large": model(
            {
                **endpoint("near", "large-1", dollars_in="3", dollars_out="15"),
                "weight": 70,
                "overrides": (LONG, DATED),
            },
            {**endpoint("far", "L", dollars_in="4", dollars_out="20"), "weight": 30},
            supports=("tools",),
        ),
        "acme/small": model(
            {
                "provider": "near",
                "upstream": "small-1",
                "price": {**price(), "cache_read": Decimal("0.1"), "request": Decimal("0.001")},
                "overrides": (NIGHTLY,),
            }
        ),
        "other/tools": model(endpoint("far", "T"), supports=("tools",)),
    },
    "routes": {
        "smart": {"description": "Small first", "try": ("acme/small", "acme/large")},
        "mixed": {
            "description": "By what is asked",
            "rules": (
                {"if": {"metadata": {"team": "search"}}, "try": ("other/tools", "acme/small")},
                {"if": {"prompt_tokens_over": 300}, "try": ("acme/large",)},
                {"try": ({"acme/small": 60, "acme/large": 40}, "other/tools")},
            ),
        },
    },
}


def answer(chance: Random) -> Answer:
    """One in twenty refuses, one in fifty breaks, the others use some tokens."""
    if chance.random() < 0.05:
        return refuses(chance.choice((429, 503)))
    if chance.random() < 0.02:
        return [*says("one"), Frame(data=b"{broken")]
    used = counts(chance.choice((10, 900, 40_000)), chance.randrange(1, 3_000))
    return [*says("one"), frame(chunk({}, finish="stop")), used, Frame(data=b"[DONE]")]


def fields(chance: Random) -> dict[str, Any]:
    """What a request says beside its message."""
    tool = {"type": "function", "function": {"name": "look_up"}}
    chosen: dict[str, Any] = {
        "tools": [tool] if chance.random() < 0.2 else [],
        "metadata": {"team": chance.choice(("search", "web")), "secret": "not kept"},
    }
    if chance.random() < 0.3:
        chosen["session_id"] = f"s-{chance.randrange(20)}"
    if chance.random() < 0.3:
        chosen["max_tokens"] = chance.randrange(1, 200)
    if chance.random() < 0.1:
        chosen["provider"] = {"sort": "price", "max_price": {"completion": 30}}
    if chance.random() < 0.1:
        chosen["models"] = ["other/tools"]
    if chance.random() < 0.3:
        chosen["messages"] = [{"role": "user", "content": "w" * chance.randrange(1, 2_000)}]
    return chosen


async def served(chance: Random, requests: int) -> list[GenerationRecord]:
    """What is recorded of requests that a gateway has served, one after the other."""
    near, far = (Scripted(*(answer(chance) for _ in range(requests))) for _ in range(2))
    home = await house(near=near, far=far, **SECTIONS)
    usual = home.call("any")
    while len(home.journal.records) < requests:
        body = request_body(chance.choice(NAMES), **fields(chance))
        call = replace(
            usual,
            parsed=home.ingress.parse(body),
            request_id=home.gateway.ids.new_id(),
            deadline=Deadline.within(home.gateway.clock, TIME_S),
        )
        with suppress(RequestError):  # what no model can do leaves no record
            await generate(home.gateway, call, home.sink(call, home.reply()))
        await asyncio.sleep(TWENTY_DAYS_S / requests)
    return home.journal.records


def lines(records: Sequence[GenerationRecord]) -> list[bytes]:
    """The records as a gateway lists them."""
    return [GenerationObject.of(record).model_dump_json().encode() for record in records]


@pytest.mark.parametrize(("run", "number"), RUNS)
async def test_c53_c65_records_replay_to_the_endpoint_and_the_nano_dollar(
    run: int, number: int
) -> None:
    records = await served(Random(run), number)
    assert len(records) == number
    base = catalog(**SECTIONS)
    judge = ReplayPlanner(base)
    exact = 0
    requests = list(read_traffic(lines(records)))
    for record, request in zip(records, requests, strict=True):
        verdict = judge.predict(request)
        assert isinstance(verdict, WouldServe)
        first = record.attempts[0]
        assert (verdict.model, verdict.provider) == (first.model, first.provider)
        if (record.model, record.provider) == (first.model, first.provider):
            assert verdict.upstream == record.upstream_model
            assert verdict.cost_nano_usd == record.cost_nano_usd
            exact += 1
    whole = replay_traffic(requests, base, base)
    assert whole.as_recorded == exact > number * 0.9
    assert whole.recorded_nano_usd == sum(record.cost_nano_usd for record in records)
    assert not whole.changes_anything
    # All that is told apart was met: prices by day, hour and size, rules, fallbacks, failures.
    assert {record.outcome for record in records} == {"ok", "error"}
    assert {record.trace.rule for record in records} == {None, 1, 2, 3}
    assert len({(line.item, line.usd_per_million) for r in records for line in r.lines}) > 9
