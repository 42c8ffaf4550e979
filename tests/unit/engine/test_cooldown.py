"""Endpoints that keep failing are asked last, by every instance, for a while.

Keeps C51.
"""

import asyncio
import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

import pytest
from msgspec.structs import replace

from tests.gateways import House, house
from tests.scripted import Scripted, Silence, answers, counts, refuses, says
from tollgate.core.errors import ErrorCode, LedgerError, MissingCredentials, UpstreamError
from tollgate.core.routing.endpoint_status import AnswerTime, CooldownPolicy, KeyFault

BROKEN = UpstreamError(ErrorCode.PROVIDER_UNAVAILABLE, "It broke.", status=500)


async def served_by(home: House, name: str = "acme/large") -> str:
    return (await home.serve(name)).headers["x-provider-used"]


async def test_c51_an_endpoint_that_keeps_failing_is_asked_last() -> None:
    home = await house(near=Scripted(*[refuses(429)] * 3, answers("Back")))
    assert [await served_by(home) for _ in range(5)] == ["far"] * 5
    assert len(home.near.requests) == 3


@pytest.mark.parametrize("status", [401, 429, 500, 529])
async def test_c51_whatever_an_endpoint_does_to_everybody_counts(status: int) -> None:
    home = await house(near=Scripted(*[refuses(status)] * 3, answers("Back")))
    while len(home.near.requests) < 3:
        await home.serve()
    assert await served_by(home) == "far"


@pytest.mark.parametrize(
    ("failure", "fault"),
    [
        (refuses(401), "rejected"),
        ([MissingCredentials("The provider near has no key.")], "absent"),
        (refuses(500), None),
    ],
)
async def test_c3_a_fault_of_a_key_is_noted_until_the_endpoint_answers(
    failure: Any, fault: str | None
) -> None:
    home = await house(near=Scripted(failure, answers("Back")))
    store = home.stores.cooldowns
    await home.serve()
    notes = await store.find_key_notes(["near/large-1"])
    assert [note.fault for note in notes.values()] == ([fault] if fault else [])
    assert await served_by(home) == "near"
    assert await store.find_key_notes(["near/large-1"]) == {}


async def test_c51_it_is_told_once_that_an_endpoint_begins_to_rest() -> None:
    home = await house(near=Scripted(refuses(429)), far=Scripted(refuses(400)))
    for _ in range(5):
        await home.serve()
    assert home.journal.rests == ["near/large-1"]


async def test_c51_it_is_asked_first_again_when_it_has_rested() -> None:
    home = await house(near=Scripted(*[refuses(429)] * 3, answers("Back")))
    for _ in range(3):
        await served_by(home)
    await home.gateway.clock.sleep(31)
    assert await served_by(home) == "near"


async def test_c51_of_eight_requests_at_once_one_probes_and_its_answer_brings_the_rest() -> None:
    slow = [Silence(5), *answers("Back")]
    home = await house(near=Scripted(*[refuses(429)] * 3, slow, answers("Back")))
    for _ in range(3):
        await home.serve()
    await home.gateway.clock.sleep(31)
    served = await asyncio.gather(*(served_by(home) for _ in range(8)))
    assert sorted(served) == ["far"] * 7 + ["near"]
    assert len(home.near.requests) == 4
    probes = [record.trace.probe for record in home.journal.records]
    assert sorted(filter(None, probes)) == ["near/large-1"]
    assert [await served_by(home) for _ in range(2)] == ["near", "near"]
    assert home.journal.records[-1].trace.probe is None


async def test_c51_a_probe_that_fails_falls_back_and_rests_twice_as_long() -> None:
    home = await house(near=Scripted(*[refuses(429)] * 4, answers("Back")))
    for _ in range(3):
        await home.serve()
    await home.gateway.clock.sleep(31)
    assert await served_by(home) == "far"
    assert [(each.provider, each.error) for each in home.journal.records[-1].attempts] == [
        ("near", "provider_rate_limit"),
        ("far", None),
    ]
    assert home.journal.records[-1].trace.probe == "near/large-1"
    await home.gateway.clock.sleep(31)
    assert await served_by(home) == "far"
    assert len(home.near.requests) == 4
    await home.gateway.clock.sleep(31)
    assert await served_by(home) == "near"


@pytest.mark.parametrize("cause", ["its caller leaves", "the request is at fault"])
async def test_c107_a_probe_without_a_result_makes_way_for_the_next_request(cause: str) -> None:
    leaves = cause == "its caller leaves"
    probed = [Silence(20), *answers("Late")] if leaves else refuses(400)
    home = await house(near=Scripted(*[refuses(429)] * 3, probed, answers("Back")))
    for _ in range(3):
        await home.serve()
    await home.gateway.clock.sleep(31)
    probing = asyncio.create_task(home.serve())
    await asyncio.sleep(1)
    if leaves:
        assert await served_by(home) == "far"
        probing.cancel()
    await asyncio.wait([probing])
    assert home.journal.records[-1].trace.probe == "near/large-1"
    assert await served_by(home) == "near"
    assert home.journal.records[-1].trace.probe == "near/large-1"


async def test_c51_a_request_whose_first_endpoint_is_healthy_probes_nothing() -> None:
    home = await house(far=Scripted(refuses(500)))
    policy = home.gateway.cooldown
    for _ in range(3):
        await home.stores.cooldowns.count_failure("far/L", policy)
    await home.gateway.clock.sleep(31)
    assert await served_by(home) == "near"
    assert home.journal.records[-1].trace.probe is None
    resting = await home.stores.cooldowns.find_resting(["far/L"], policy)
    assert resting["far/L"] <= home.gateway.clock.now_s()


async def test_c51_a_refused_request_begins_no_probe() -> None:
    home = await house()
    home.stores.books.wallets["acme"].available = 0
    policy = home.gateway.cooldown
    for _ in range(3):
        await home.stores.cooldowns.count_failure("near/large-1", policy)
    await home.gateway.clock.sleep(31)
    with pytest.raises(LedgerError):
        await home.serve()
    assert await home.stores.cooldowns.begin_probe("near/large-1", policy)


async def test_c51_an_endpoint_that_rests_still_serves_where_there_is_no_other() -> None:
    home = await house(
        near=Scripted(*[refuses(401)] * 3, answers("Back")), far=Scripted(refuses(500))
    )
    for _ in range(3):
        await home.serve()
    assert await served_by(home) == "near"


@pytest.mark.parametrize("status", [400, 413, 422])
async def test_c51_a_request_that_is_at_fault_itself_rests_nobody(status: int) -> None:
    home = await house(near=Scripted(*[refuses(status)] * 4, answers("Hello")))
    for _ in range(4):
        await home.serve()
    assert await served_by(home) == "near"


async def test_c51_a_stream_that_breaks_counts_too() -> None:
    broken = [*says("Hel"), counts(10, 1), BROKEN]
    home = await house(near=Scripted(*[broken] * 3, answers("Back")))
    for _ in range(3):
        await home.serve()
    assert await served_by(home) == "far"


async def test_c51_the_file_says_how_many_failures_it_takes() -> None:
    home = await house(
        near=Scripted(refuses(429), answers("Back")),
        defaults={"cooldown": {"after_failures": 1}},
    )
    assert [await served_by(home) for _ in range(2)] == ["far", "far"]
    assert len(home.near.requests) == 1


class Defective:
    """A store that breaks its promise never to raise."""

    async def find_resting(
        self, endpoint_ids: Collection[str], policy: CooldownPolicy
    ) -> Mapping[str, float]:
        return {}

    async def count_failure(
        self, endpoint_id: str, policy: CooldownPolicy, fault: KeyFault | None = None
    ) -> bool:
        raise KeyError(endpoint_id)

    def awaits_answer(self, endpoint_id: str, policy: CooldownPolicy) -> bool:
        return False

    def add_answer(self, endpoint_id: str, times: AnswerTime) -> bool:
        return False


async def test_a_report_that_breaks_is_a_defect_and_the_answer_stands() -> None:
    home = await house(near=Scripted(refuses(429)))
    home = dataclasses.replace(home, gateway=replace(home.gateway, cooldowns=Defective()))
    assert await served_by(home) == "far"
    assert home.record.outcome == "ok"
    assert [type(unexpected_error) for unexpected_error, _ in home.journal.defects] == [KeyError]
