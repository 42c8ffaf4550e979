"""After a cooldown one request of all instances probes the endpoint, and its answer ends the rest.

Keeps C51.
"""

import asyncio

from tests.metered import Metered
from tests.stores import DynamoStores, MemoryStores
from tollgate.core.routing.endpoint_status import (
    FAILURES_LAST_S,
    PROBE_LASTS_S,
    CooldownPolicy,
)
from tollgate.stores.routing.cooldowns import DynamoCooldownStore

AnyStores = MemoryStores | DynamoStores
POLICY = CooldownPolicy(after_failures=3, within_s=60, rest_s=30, rest_max_s=100)
NEAR = "near/large-1"


async def rest(stores: AnyStores) -> None:
    for _ in range(POLICY.after_failures):
        await stores.cooldowns.count_failure(NEAR, POLICY)


async def due(stores: AnyStores) -> float | None:
    """The seconds until the probe is due; None if the endpoint does not rest."""
    await stores.clock.sleep(6)
    resting = await stores.cooldowns.find_resting([NEAR], POLICY)
    await stores.clock.sleep(-6)
    return resting[NEAR] - int(stores.clock.now) if resting else None


async def test_c51_an_endpoint_in_cooldown_is_probed_once_after_its_rest(
    stores: AnyStores,
) -> None:
    await rest(stores)
    assert await due(stores) == 30
    await stores.clock.sleep(29)
    assert not await stores.cooldowns.begin_probe(NEAR, POLICY)
    await stores.clock.sleep(1)
    assert [await stores.cooldowns.begin_probe(NEAR, POLICY) for _ in range(3)] == [
        True,
        False,
        False,
    ]
    assert await due(stores) == PROBE_LASTS_S


async def test_c51_the_answer_of_a_probe_ends_the_cooldown_for_all(stores: AnyStores) -> None:
    store = stores.cooldowns
    await rest(stores)
    assert not store.awaits_answer(NEAR, POLICY)
    await store.note_recovery(NEAR, POLICY)
    assert await due(stores) == 30
    await stores.clock.sleep(30)
    assert await store.begin_probe(NEAR, POLICY)
    assert store.awaits_answer(NEAR, POLICY)
    await store.note_recovery(NEAR, POLICY)
    assert not store.awaits_answer(NEAR, POLICY)
    assert await due(stores) is None
    assert [await store.count_failure(NEAR, POLICY) for _ in range(3)] == [False, False, True]


async def test_c51_each_failed_probe_doubles_the_rest_up_to_its_maximum(
    stores: AnyStores,
) -> None:
    await rest(stores)
    rests: list[float | None] = []
    for _ in range(4):
        rests.append(await due(stores))
        await stores.clock.sleep(rests[-1] or 0)
        assert await stores.cooldowns.begin_probe(NEAR, POLICY)
        await stores.cooldowns.count_failure(NEAR, POLICY)
    assert rests == [30, 60, 100, 100]
    await stores.clock.sleep(100)
    assert await stores.cooldowns.begin_probe(NEAR, POLICY)
    await stores.cooldowns.note_recovery(NEAR, POLICY)
    await rest(stores)
    assert await due(stores) == 30


async def test_c51_a_probe_whose_process_dies_frees_itself(stores: AnyStores) -> None:
    await rest(stores)
    await stores.clock.sleep(30)
    assert await stores.cooldowns.begin_probe(NEAR, POLICY)
    await stores.clock.sleep(PROBE_LASTS_S - 1)
    assert not await stores.cooldowns.begin_probe(NEAR, POLICY)
    await stores.clock.sleep(1)
    assert await stores.cooldowns.begin_probe(NEAR, POLICY)


async def test_c107_a_probe_without_a_result_makes_way_for_the_next_one(
    stores: AnyStores,
) -> None:
    store = stores.cooldowns
    await rest(stores)
    await stores.clock.sleep(30)
    assert await store.begin_probe(NEAR, POLICY)
    await store.release_probe(NEAR)
    await store.find_resting([NEAR], POLICY)
    assert [await store.begin_probe(NEAR, POLICY) for _ in range(2)] == [True, False]
    # The probe that was released does not count: the rest is doubled once.
    await store.count_failure(NEAR, POLICY)
    assert await due(stores) == 60
    await store.release_probe(NEAR)
    assert await due(stores) == 60


async def test_c51_old_failures_are_forgotten_without_a_probe(stores: AnyStores) -> None:
    await rest(stores)
    await stores.clock.sleep(POLICY.rest_max_s + FAILURES_LAST_S)
    assert await due(stores) is None
    assert await stores.cooldowns.begin_probe(NEAR, POLICY)
    assert [await stores.cooldowns.count_failure(NEAR, POLICY) for _ in range(3)] == [
        False,
        False,
        True,
    ]


async def test_c51_a_probe_and_its_answer_cost_a_write_each_and_a_healthy_endpoint_none(
    honest: DynamoStores,
) -> None:
    meter = Metered(honest.client)
    store = DynamoCooldownStore(meter, honest.tables.core, honest.clock)

    async def serve() -> float:
        meter.reset()
        resting = await store.find_resting([NEAR], POLICY)
        assert not resting or await store.begin_probe(NEAR, POLICY)
        if store.awaits_answer(NEAR, POLICY):
            await store.note_recovery(NEAR, POLICY)
        return meter.write_units

    assert await serve() == 0
    for _ in range(POLICY.after_failures):
        await store.count_failure(NEAR, POLICY)
    await honest.clock.sleep(30)
    assert [await serve() for _ in range(3)] == [2, 0, 0]


async def test_c51_of_eight_instances_at_once_exactly_one_probes(dynamo: DynamoStores) -> None:
    for _ in range(POLICY.after_failures):
        await dynamo.cooldowns.count_failure(NEAR, POLICY)
    instances = [
        DynamoCooldownStore(dynamo.client, dynamo.tables.core, dynamo.clock) for _ in range(8)
    ]
    for round_ in range(3):
        await dynamo.clock.sleep(POLICY.longest_rest_s + 6)
        for each in instances:
            assert NEAR in await each.find_resting([NEAR], POLICY)
        probes = await asyncio.gather(*(each.begin_probe(NEAR, POLICY) for each in instances))
        assert sum(probes) == 1, round_
        await instances[probes.index(True)].count_failure(NEAR, POLICY)
    await dynamo.clock.sleep(POLICY.longest_rest_s + 6)
    for each in instances:
        await each.find_resting([NEAR], POLICY)
    probes = await asyncio.gather(*(each.begin_probe(NEAR, POLICY) for each in instances))
    await instances[probes.index(True)].note_recovery(NEAR, POLICY)
    await dynamo.clock.sleep(6)
    assert [await each.find_resting([NEAR], POLICY) for each in instances] == [{}] * 8
