"""Workspaces share the places of a reader."""

import asyncio
from contextlib import AsyncExitStack

import pytest

from tollgate.reading.places import PLACES, PLACES_OF_A_WORKSPACE, Places


async def _hold(places: Places, workspace_id: str, order: list[str]) -> None:
    async with places.take(workspace_id, wait_seconds_max=1000):
        order.append(workspace_id)
        await asyncio.sleep(10)


async def _turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_a_workspace_with_many_documents_leaves_places_to_others() -> None:
    places, order = Places(), list[str]()
    async with asyncio.TaskGroup() as group:
        for _ in range(50):
            group.create_task(_hold(places, "hostile", order))
        await _turns()
        assert order == ["hostile"] * PLACES_OF_A_WORKSPACE
        honest = group.create_task(_hold(places, "honest", order))
        start_s = asyncio.get_running_loop().time()
        await honest
        # The honest document did not wait.
        assert asyncio.get_running_loop().time() - start_s == pytest.approx(10)


async def test_a_free_place_goes_to_the_workspace_with_the_fewest() -> None:
    places, order = Places(), list[str]()
    async with asyncio.TaskGroup() as group:
        for workspace_id in ("a", "a", "a", "b", "b", "b", "c"):
            group.create_task(_hold(places, workspace_id, order))
        await _turns()
        # a and b hold two places each, so c is next although a waits longer.
        assert order == ["a", "a", "b", "b"]
        await asyncio.sleep(10.5)
        assert order[4] == "c"
    assert sorted(order) == ["a", "a", "a", "b", "b", "b", "c"]


async def test_one_who_waits_too_long_leaves_no_trace() -> None:
    places = Places()
    async with AsyncExitStack() as stack:
        for number in range(PLACES):
            await stack.enter_async_context(places.take(f"ws_{number}", wait_seconds_max=1))
        with pytest.raises(TimeoutError):
            async with places.take("late", wait_seconds_max=30):
                raise AssertionError
        leaving = asyncio.create_task(_hold(places, "late", []))
        await _turns()
        leaving.cancel()
        await asyncio.wait([leaving])
    async with AsyncExitStack() as stack:
        for number in range(PLACES):
            await stack.enter_async_context(places.take(f"ws_{number}", wait_seconds_max=1))


async def test_a_place_is_free_again_after_a_failure() -> None:
    places = Places()
    for _ in range(PLACES + 1):
        with pytest.raises(ValueError, match="broken"):
            async with places.take("ws_1", wait_seconds_max=1):
                raise ValueError("broken")
