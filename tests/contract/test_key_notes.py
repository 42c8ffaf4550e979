"""A fault of a provider's key is noted with the failure that found it, for all instances.

Keeps C3.
"""

from tests.stores import DynamoStores, MemoryStores
from tollgate.core.routing.endpoint_status import FAULT_LASTS_S, CooldownPolicy, KeyNote

AnyStores = MemoryStores | DynamoStores
POLICY = CooldownPolicy(after_failures=3, within_s=60, rest_s=30)


async def test_c3_a_fault_of_a_key_is_noted_by_its_failure_and_lasts_a_day(
    stores: AnyStores,
) -> None:
    store, both = stores.cooldowns, ["near/large-1", "far/L"]
    await store.count_failure("near/large-1", POLICY, "absent")
    await store.count_failure("far/L", POLICY)
    seen_s = int(stores.clock.now)
    assert await store.find_key_notes(both) == {"near/large-1": KeyNote("absent", seen_s)}
    assert [store.awaits_answer(each, POLICY) for each in both] == [True, False]
    await store.count_failure("near/large-1", POLICY)
    assert await store.find_key_notes(both) == {}
    await store.count_failure("far/L", POLICY, "rejected")
    await stores.clock.sleep(FAULT_LASTS_S - 1)
    assert set(await store.find_key_notes(both)) == {"far/L"}
    await stores.clock.sleep(1)
    assert await store.find_key_notes(both) == {}


async def test_c3_a_fault_of_a_key_is_removed_by_any_instance(stores: AnyStores) -> None:
    store = stores.cooldowns
    await store.count_failure("near/large-1", POLICY, "rejected")
    await store.note_recovery("near/large-1", POLICY)
    assert not store.awaits_answer("near/large-1", POLICY)
    assert await store.find_key_notes(["near/large-1"]) == {}
    # An endpoint without failures has nothing to remove.
    await store.note_recovery("far/L", POLICY)
    assert await store.find_key_notes(["far/L"]) == {}
